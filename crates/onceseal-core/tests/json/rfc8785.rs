//! The examples that RFC 8785 publishes: §3.2.2 to §3.2.4 and appendix B.

use onceseal_core::json::{Limits, Value, canonical, read, read_canonical};

const ANY: Limits = Limits::DATA;

/// §3.2.2, as printed.
const SAMPLE: &str = r#"{
  "numbers": [333333333.33333329, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"#;

/// §3.2.4, as printed.
const SAMPLE_BYTES: &str = "
  7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
  75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
  5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
  65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
  5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
  30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d";

#[test]
fn the_sample_becomes_the_published_bytes() {
    let bytes: Vec<u8> = SAMPLE_BYTES
        .split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"))
        .collect();
    let value = read(SAMPLE.as_bytes(), &ANY).expect("the sample");
    assert_eq!(canonical(&value).as_bytes(), bytes);
}

#[test]
fn names_are_sorted_as_the_sorting_sample_says() {
    let sample = r#"{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let value = read(sample.as_bytes(), &ANY).expect("the sample");
    let order: Vec<_> =
        value.as_object().expect("an object").iter().filter_map(|(_, v)| v.as_text()).collect();
    assert_eq!(
        order,
        [
            "Carriage Return",
            "One",
            "Control",
            "Latin Small Letter O With Diaeresis",
            "Euro Sign",
            "Emoji: Grinning Face",
            "Hebrew Letter Dalet With Dagesh",
        ]
    );
}

/// Appendix B, table 1: bits of a double and its text; none where the RFC
/// demands an error.
const NUMBERS: &[(u64, Option<&str>)] = &[
    (0x0000_0000_0000_0000, Some("0")),
    (0x8000_0000_0000_0000, Some("0")),
    (0x0000_0000_0000_0001, Some("5e-324")),
    (0x8000_0000_0000_0001, Some("-5e-324")),
    (0x7fef_ffff_ffff_ffff, Some("1.7976931348623157e+308")),
    (0xffef_ffff_ffff_ffff, Some("-1.7976931348623157e+308")),
    (0x4340_0000_0000_0000, Some("9007199254740992")),
    (0xc340_0000_0000_0000, Some("-9007199254740992")),
    (0x4430_0000_0000_0000, Some("295147905179352830000")),
    (0x7fff_ffff_ffff_ffff, None),
    (0x7ff0_0000_0000_0000, None),
    (0x44b5_2d02_c7e1_4af5, Some("9.999999999999997e+22")),
    (0x44b5_2d02_c7e1_4af6, Some("1e+23")),
    (0x44b5_2d02_c7e1_4af7, Some("1.0000000000000001e+23")),
    (0x444b_1ae4_d6e2_ef4e, Some("999999999999999700000")),
    (0x444b_1ae4_d6e2_ef4f, Some("999999999999999900000")),
    (0x444b_1ae4_d6e2_ef50, Some("1e+21")),
    (0x3eb0_c6f7_a0b5_ed8c, Some("9.999999999999997e-7")),
    (0x3eb0_c6f7_a0b5_ed8d, Some("0.000001")),
    (0x41b3_de43_5555_5553, Some("333333333.3333332")),
    (0x41b3_de43_5555_5554, Some("333333333.33333325")),
    (0x41b3_de43_5555_5555, Some("333333333.3333333")),
    (0x41b3_de43_5555_5556, Some("333333333.3333334")),
    (0x41b3_de43_5555_5557, Some("333333333.33333343")),
    (0xbecb_f647_612f_3696, Some("-0.0000033333333333333333")),
    (0x4314_3ff3_c1cb_0959, Some("1424953923781206.2")),
];

#[test]
fn numbers_are_written_as_appendix_b_says_and_read_back_to_the_same_bits() {
    for &(bits, text) in NUMBERS {
        let value = Value::number(f64::from_bits(bits));
        assert_eq!(value.as_ref().map(canonical).as_deref(), text, "{bits:016x}");
        if let Some(text) = text {
            assert_eq!(read_canonical(text, &ANY).ok(), value, "{text}");
        }
    }
}

#[test]
fn what_appendix_b_refuses_is_refused_as_text_and_cannot_pass_as_stored_text() {
    for text in ["NaN", "Infinity", "-Infinity"] {
        assert!(read(text.as_bytes(), &ANY).is_err(), "{text}");
    }
    for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let text = canonical(&Value::List(vec![Value::Float(broken)]));
        assert!(read_canonical(&text, &ANY).is_err(), "{text}");
    }
}
