//! Histories as lines of words.

use std::fmt::{self, Display};

use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};

use super::{Answer, Call, Operation};

/// One line of words, which [`Operation::parse`] reads.
impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answered = self.answered.map_or("-".to_owned(), |at| at.to_string());
        write!(f, "{} {} {answered} {} {}", self.id, self.invoked, self.call, self.answer)
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Run { lease } => write!(f, "run {lease}"),
            Call::Settle { by, fence, outcome } => write!(f, "settle {by} {fence} {}", outcome.as_str()),
            Call::Renew { by, fence, lease } => write!(f, "renew {by} {fence} {lease}"),
            Call::Resolve { fence, happened } => write!(f, "resolve {fence} {happened}"),
            Call::Lapse => f.write_str("lapse"),
            Call::Read => f.write_str("read"),
        }
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Given { fence, until } => write!(f, "given {fence} {until}"),
            Answer::Settled { state, repeated } => write!(f, "settled {state} {repeated}"),
            Answer::Renewed { until } => write!(f, "renewed {until}"),
            Answer::Lapsed(changed) => write!(f, "lapsed {changed}"),
            Answer::Is(None) => f.write_str("absent"),
            Answer::Is(Some((state, fence))) => write!(f, "is {state} {fence}"),
            Answer::Refused(code) => write!(f, "refused {code}"),
            Answer::Unknown => f.write_str("unknown"),
        }
    }
}

impl Operation {
    /// Reads the printed form.
    #[must_use]
    pub fn parse(line: &str) -> Option<Operation> {
        let mut words = line.split(' ');
        let id = number(&mut words)?;
        let invoked = number(&mut words)?;
        let answered = match words.next()? {
            "-" => None,
            at => Some(at.parse().ok()?),
        };
        let call = call(&mut words)?;
        let answer = answer(&mut words)?;
        words.next().is_none().then_some(Operation { id, invoked, answered, call, answer })
    }
}

fn number<'a, T: std::str::FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Option<T> {
    words.next()?.parse().ok()
}

fn call<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Call> {
    Some(match words.next()? {
        "run" => Call::Run { lease: number(words)? },
        "settle" => Call::Settle {
            by: number(words)?,
            fence: number(words)?,
            outcome: Outcome::parse(words.next()?)?,
        },
        "renew" => Call::Renew { by: number(words)?, fence: number(words)?, lease: number(words)? },
        "resolve" => Call::Resolve { fence: number(words)?, happened: number(words)? },
        "lapse" => Call::Lapse,
        "read" => Call::Read,
        _ => return None,
    })
}

fn answer<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Answer> {
    Some(match words.next()? {
        "given" => Answer::Given { fence: number(words)?, until: number(words)? },
        "settled" => Answer::Settled { state: EffectState::parse(words.next()?)?, repeated: number(words)? },
        "renewed" => Answer::Renewed { until: number(words)? },
        "lapsed" => Answer::Lapsed(number(words)?),
        "absent" => Answer::Is(None),
        "is" => Answer::Is(Some((EffectState::parse(words.next()?)?, number(words)?))),
        "refused" => Answer::Refused(Code::parse(words.next()?)?),
        "unknown" => Answer::Unknown,
        _ => return None,
    })
}
