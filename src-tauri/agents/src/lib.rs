//! Agent images and the agent loop: ordinary programs of the kernel.
