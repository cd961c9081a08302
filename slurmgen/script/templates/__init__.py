"""What there is to know of a template: whose it is, what it reads, what is wrong with it."""
