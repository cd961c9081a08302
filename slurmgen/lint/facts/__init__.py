"""What several rules know of a job: its launches, endpoints, ports, variables, environments."""
