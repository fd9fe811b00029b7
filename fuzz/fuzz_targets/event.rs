//! Whatever the stored bytes: no panic, and what decodes packs to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onceseal_core::journal::{Body, Kind, Refs, Row};
use onceseal_core::pack::Pack;
use onceseal_core::stream::StreamKind;

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (kind, open, private) = input;
    if let Ok(event) = Kind::unpacked(&[kind]) {
        if let Ok(body) = Body::unpack(event, open, private) {
            let (mut data, mut sealed, mut text) = (Vec::new(), Vec::new(), String::new());
            body.pack_data(&mut data);
            body.pack_sealed(&mut sealed);
            body.write_data(&mut text);
            body.write_sealed(&mut text);
            assert_eq!((data.as_slice(), sealed.as_slice()), (open, private));
        }
    }
    if let Ok(refs) = Refs::unpacked(open) {
        assert_eq!(refs.packed(), open);
    }
    if let Ok(stream) = StreamKind::unpacked(&[kind]) {
        if let Ok(row) = Row::unpack(stream, open, private) {
            let (a, b) = row.packed();
            assert_eq!(a, open);
            assert_eq!(b, private);
            let _ = row.keys();
        }
    }
});
