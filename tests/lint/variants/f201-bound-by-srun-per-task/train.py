import distenv

distenv.setup()
