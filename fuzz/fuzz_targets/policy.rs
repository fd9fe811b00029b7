//! Whatever the file: no panic, and a policy that compiles means the same when
//! it is read back from its canonical text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onceseal_core::json::Object;
use onceseal_core::policy::{ActivePolicy, Document, Facts};

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = Document::read(bytes) else { return };
    let Ok(policy) = ActivePolicy::compile(document.value()) else { return };
    let again = ActivePolicy::restore(&policy.text).expect("what compiled once compiles again");
    assert_eq!(policy.hash, again.hash);
    let arguments = Object::new();
    for (name, _) in policy.policy.entries() {
        let facts = Facts { name, arguments: &arguments, environment: "production", agent: "a", user: None };
        assert_eq!(policy.policy.decide(&facts), again.policy.decide(&facts));
    }
    let _ = policy.policy.check(Some("a"));
});
