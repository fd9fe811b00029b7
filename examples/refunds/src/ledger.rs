//! What was paid: a line each, `<id> <payment> <amount> <key>`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// One refund that was paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The provider's own name for it.
    pub id: String,
    /// The payment that was refunded.
    pub payment: String,
    /// How much, in the smallest unit.
    pub amount: u64,
    /// The `Idempotency-Key` that it came under.
    pub key: String,
}

/// What becomes of a request to pay.
pub(crate) enum Paid {
    Now(Entry),
    /// The same was paid under this key before.
    Before(Entry),
    /// Something else was.
    Other,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    file: File,
    entries: Vec<Entry>,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> io::Result<Ledger> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let entries = text.lines().map(|line| Entry::parse(line).ok_or(io::ErrorKind::InvalidData));
        Ok(Ledger { entries: entries.collect::<Result<_, _>>()?, file })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn pay(&mut self, key: &str, payment: &str, amount: u64, forgets: bool) -> io::Result<Paid> {
        match self.find(key).filter(|_| !forgets) {
            Some(entry) if entry.payment == payment && entry.amount == amount => {
                return Ok(Paid::Before(entry.clone()));
            }
            Some(_) => return Ok(Paid::Other),
            None => {}
        }
        let (id, payment) = (format!("re_{}", self.entries.len() + 1), payment.to_owned());
        let entry = Entry { id, payment, amount, key: key.to_owned() };
        let Entry { id, payment, amount, key } = &entry;
        self.file.write_all(format!("{id} {payment} {amount} {key}\n").as_bytes())?;
        self.entries.push(entry.clone());
        Ok(Paid::Now(entry))
    }
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        let [id, payment, amount, key] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let amount = amount.parse().ok()?;
        Some(Entry { id: id.to_owned(), payment: payment.to_owned(), amount, key: key.to_owned() })
    }
}
