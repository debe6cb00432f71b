//! Images in YAML: read or refused with the place of what is wrong; what is read survives being
//! written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steward_kernel::image::read_bytes;

fuzz_target!(|bytes: &[u8]| {
    match read_bytes(bytes) {
        Ok(image) => {
            let again = read_bytes(image.to_yaml().as_bytes());
            assert_eq!(again.map(|i| i.digest()), Ok(image.digest()));
        }
        Err(error) => assert!(!error.into_sys().message.is_empty()),
    }
});
