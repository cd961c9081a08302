"""What is wrong with a batch script: rules, and the engine that asks them."""
