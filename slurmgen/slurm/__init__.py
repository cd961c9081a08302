"""The only package (with `sandbox`) that runs processes."""
