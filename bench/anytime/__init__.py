"""Quality against time and evaluations, policy by policy on the same rounds."""
