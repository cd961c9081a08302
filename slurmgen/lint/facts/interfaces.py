"""The variables that name the network interface of a communication library."""

NCCL = "NCCL_SOCKET_IFNAME"
GLOO = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
NAMES = (NCCL, *GLOO)
