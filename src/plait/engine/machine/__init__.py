"""The machine engine: a stock Linux kernel, unmodified, in an emulator that counts instructions (QEMU)."""
