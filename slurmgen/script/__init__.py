"""From a job file and a profile to the script: what is decided, and how it is written."""
