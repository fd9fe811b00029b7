//! Whatever the bytes: no panic, and what is read has one canonical text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onceseal_core::json::{self, Limits};

fuzz_target!(|bytes: &[u8]| {
    for limits in [Limits::ACTION, Limits::RESULT, Limits::DATA] {
        let Ok(value) = json::read(bytes, &limits) else { continue };
        let text = json::canonical(&value);
        assert_eq!(json::read_canonical(&text, &Limits::DATA).as_ref(), Ok(&value));
        let _ = json::escape_for_display(&text);
    }
});
