//! Agreement with an ECMAScript engine, which RFC 8785 is defined by.

use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use onceseal_core::json::{JsonErrorKind, Limits, Value, canonical, read};

use crate::messy::Random;

const NUMBERS: usize = 1_000_000;
const OBJECTS: usize = 100_000;

/// Prints the text of each number: of its bits (`b`) or of its spelling (`t`).
const NUMBER_SCRIPT: &str = r"
const view = new DataView(new ArrayBuffer(8));
const bits = hex => (view.setBigUint64(0, BigInt('0x' + hex)), view.getFloat64(0));
const lines = require('fs').readFileSync(0, 'utf8').split('\n');
const text = line => JSON.stringify(line[0] === 'b' ? bits(line.slice(1)) : JSON.parse(line.slice(1)));
process.stdout.write(lines.map(text).join('\n'));
";

/// Prints each value with the members of its objects in order.
const OBJECT_SCRIPT: &str = r"
const sorted = object => Object.keys(object).sort().map(name => JSON.stringify(name) + ':' + text(object[name]));
const text = value =>
  Array.isArray(value) ? '[' + value.map(text).join(',') + ']'
  : value !== null && typeof value === 'object' ? '{' + sorted(value).join(',') + '}'
  : JSON.stringify(value);
const lines = require('fs').readFileSync(0, 'utf8').split('\n');
process.stdout.write(lines.map(line => text(JSON.parse(line))).join('\n'));
";

/// What `node` prints for these lines; nothing if it is not installed.
fn ask_node(script: &str, lines: &[String]) -> Option<Vec<String>> {
    let child =
        Command::new("node").args(["-e", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: node is not installed");
            return None;
        }
        child => child.expect("node starts"),
    };
    let (mut input, mut output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let mut answer = String::new();
    thread::scope(|scope| {
        scope.spawn(move || input.write_all(lines.join("\n").as_bytes()).expect("node reads"));
        output.read_to_string(&mut answer).expect("node writes UTF-8");
    });
    assert!(child.wait().expect("node ends").success());
    let answers: Vec<_> = answer.split('\n').map(str::to_owned).collect();
    assert_eq!(answers.len(), lines.len());
    Some(answers)
}

/// A number as bits or as a spelling, of one of the kinds that go wrong.
fn number_line(random: &mut Random, kind: usize) -> String {
    let sign = random.pick(&["", "-"]);
    match kind {
        0..=2 => {
            let bits = loop {
                let bits = random.bits();
                if f64::from_bits(bits).is_finite() {
                    break bits;
                }
            };
            format!("b{bits:016x}")
        }
        3 | 4 => {
            let digits = format!("{}{:019}", 1 + random.below(9), random.below(10_u64.pow(19)));
            let (whole, fraction) = digits.split_at(1 + usize::try_from(random.below(19)).expect("an index"));
            format!("t{sign}{whole}.{fraction}")
        }
        5 | 6 => format!("t{sign}{}.{:02}", random.below(100_000_000), random.below(100)),
        7 => {
            let exponent = random.below(660).cast_signed() - 345;
            format!("t{sign}{}.{}e{exponent}", random.below(10), random.below(100_000_000))
        }
        _ => format!("t{sign}{}", random.bits() >> random.below(64)),
    }
}

#[test]
fn a_million_numbers_are_read_and_written_as_node_does() {
    let mut random = Random(8785);
    let lines: Vec<_> = (0..NUMBERS).map(|at| number_line(&mut random, at % 10)).collect();
    let Some(answers) = ask_node(NUMBER_SCRIPT, &lines) else { return };
    let (mut same, mut overflows, mut inexact) = (0, 0, 0);
    for (line, answer) in lines.iter().zip(&answers) {
        let (kind, rest) = line.split_at(1);
        if kind == "b" {
            let bits = u64::from_str_radix(rest, 16).expect("hexadecimal");
            assert_eq!(
                Value::number(f64::from_bits(bits)).map(|x| canonical(&x)).as_ref(),
                Some(answer),
                "{line}"
            );
            same += 1;
            continue;
        }
        match read(rest.as_bytes(), &Limits::DATA).map_err(|error| error.kind) {
            Ok(value) => {
                assert_eq!(canonical(&value), *answer, "{line}");
                same += 1;
            }
            // Where we refuse, the engine changes the number.
            Err(JsonErrorKind::Overflow) => {
                assert_eq!(answer, "null", "{line}");
                overflows += 1;
            }
            Err(JsonErrorKind::Inexact) => {
                assert_ne!(rest, answer, "{line}");
                inexact += 1;
            }
            Err(kind) => panic!("{line}: {kind}"),
        }
    }
    println!("{same} numbers are the same, {overflows} overflow, {inexact} would lose digits");
    assert!(same > NUMBERS * 9 / 10 && overflows > 0 && inexact > 0);
}

#[test]
fn a_hundred_thousand_objects_are_ordered_and_escaped_as_node_does() {
    let mut random = Random(8259);
    let values: Vec<_> = (0..OBJECTS).map(|_| random.object(2)).collect();
    let lines: Vec<_> = values.iter().map(|value| random.spell(value)).collect();
    let Some(answers) = ask_node(OBJECT_SCRIPT, &lines) else { return };
    for ((value, line), answer) in values.iter().zip(&lines).zip(&answers) {
        assert_eq!(canonical(value), *answer);
        assert_eq!(read(line.as_bytes(), &Limits::DATA).as_ref(), Ok(value), "{line}");
    }
}
