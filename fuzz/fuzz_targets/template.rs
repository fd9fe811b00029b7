//! Whatever template and arguments: no panic, and two arguments never make one key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onceseal_core::json::Object;
use onceseal_core::policy::{Template, TemplateKind};

fuzz_target!(|input: (&str, &str, &str, &str, &str)| {
    let (text, a, b, c, d) = input;
    let Ok(template) = Template::parse(text, TemplateKind::Effect) else { return };
    let key = |x: &str, y: &str| {
        let mut arguments = Object::new();
        arguments.insert("a", x);
        arguments.insert("b", y);
        template.resolve(&arguments, None).ok()
    };
    let both = template.arguments().count() == 2;
    if let (true, Some(one), Some(two)) = (both && text.contains("{a}") && text.contains("{b}"), key(a, b), key(c, d)) {
        assert_eq!(one == two, (a, b) == (c, d));
    }
});
