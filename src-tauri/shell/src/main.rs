//! The desktop program. Everything it does is in the library, where tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    steward_desktop::run()
}
