"""Finding things in a tree."""

import os

# onnxruntime looks up its vendor's host for telemetry and keeps an id of the machine in the home directory, unless
# this stands in the environment when it is imported. It is set here, because every process that can load a model
# imports this package first, and whatever else was set: nobody who hosts memory for others means to have that on.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
