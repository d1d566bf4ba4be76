"""The lab on Kubernetes: Jobs whose pods are workers, and the state of pods. It calls `kubectl` and has no library."""
