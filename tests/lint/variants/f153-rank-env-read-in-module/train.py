from dist_setup import setup

setup()
