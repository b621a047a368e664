# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane on loopback for the end-to-end cases. Standard library only."""
