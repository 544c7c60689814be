"""What every Warp kernel needs: precision, launches on torch memory, and autograd Functions over a batch."""
