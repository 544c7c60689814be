"""Infrastructure of Warp kernels: precision, launches on torch memory, and autograd functions over a batch."""
