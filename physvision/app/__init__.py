"""Local web application: one page on a clip, a server without torch, and a worker process that runs the analyses."""
