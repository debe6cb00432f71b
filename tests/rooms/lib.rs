//! Tests across rooms: what must hold, as data, through the kernel's real primitives, on real files
//! and a real journal. The tests are in `main.rs` and its modules; this library is empty.
