from hypothesis import settings

# Machines are busy at times; how long an example takes is no matter of right or wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
