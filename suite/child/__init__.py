"""The untrusted side: zygote, keeper and worker. Imports the standard library and torch, nothing of ours."""
