//! What the checker of histories takes for possible, and what not.

use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};
use onceseal_tests::history::{Answer, Call, Moment, Operation, Why, check};

const LEASE: i64 = 60;

struct History(Vec<Operation>);

impl History {
    fn new() -> History {
        History(Vec::new())
    }

    /// Asked at one moment and answered at another; its id.
    fn told(&mut self, (invoked, answered): (Moment, Moment), call: Call, answer: Answer) -> u64 {
        let id = self.0.len() as u64 + 1;
        self.0.push(Operation { id, invoked, answered: Some(answered), call, answer });
        id
    }

    /// Asked, and nobody knows what became of it.
    fn untold(&mut self, invoked: Moment, call: Call) -> u64 {
        let id = self.0.len() as u64 + 1;
        self.0.push(Operation { id, invoked, answered: None, call, answer: Answer::Unknown });
        id
    }

    fn given(&mut self, at: (Moment, Moment), fence: u64) -> u64 {
        let until = at.0 + LEASE;
        self.told(at, Call::Run { lease: LEASE }, Answer::Given { fence, until })
    }

    fn no(&mut self, at: (Moment, Moment), code: Code) -> u64 {
        self.told(at, Call::Run { lease: LEASE }, Answer::Refused(code))
    }

    fn settled(&mut self, at: (Moment, Moment), by: u64, fence: u64, outcome: Outcome) -> u64 {
        let answer = Answer::Settled { state: outcome.into(), repeated: false };
        self.told(at, Call::Settle { by, fence, outcome }, answer)
    }

    fn is(&mut self, at: (Moment, Moment), state: EffectState, fence: u64) -> u64 {
        self.told(at, Call::Read, Answer::Is(Some((state, fence))))
    }

    fn is_possible(&self) -> bool {
        // The order in which it was written down says nothing.
        let backwards: Vec<_> = self.0.iter().rev().cloned().collect();
        let [there, back] = [&self.0, &backwards].map(|operations| check(operations).map_err(|f| f.why));
        assert_eq!(there, back);
        assert_ne!(there, Err(Why::TooLong));
        there.is_ok()
    }
}

#[test]
fn one_attempt_after_another_is_possible_and_two_at_once_are_not() {
    let mut history = History::new();
    let first = history.given((0, 1), 1);
    history.no((2, 3), Code::InProgress);
    history.settled((4, 5), first, 1, Outcome::Failed);
    let second = history.given((6, 7), 2);
    history.settled((8, 9), second, 2, Outcome::Committed);
    history.no((10, 11), Code::Duplicate);
    history.is((12, 13), EffectState::Committed, 2);
    assert!(history.is_possible());
    history.given((14, 15), 3);
    assert!(!history.is_possible(), "it has happened");

    let mut twice = History::new();
    twice.given((0, 9), 1);
    twice.given((1, 8), 1);
    assert!(!twice.is_possible(), "one number for two");
    let mut both = History::new();
    both.given((0, 9), 1);
    both.given((1, 8), 2);
    assert!(!both.is_possible(), "two at once");
}

#[test]
fn what_overlaps_may_have_happened_either_way_and_what_does_not_may_not() {
    let mut either = History::new();
    either.given((0, 10), 1);
    either.no((0, 1), Code::InProgress);
    either.told((2, 3), Call::Read, Answer::Is(Some((EffectState::Executing, 1))));
    assert!(either.is_possible(), "it was given before it was told");
    either.told((4, 5), Call::Read, Answer::Is(None));
    assert!(!either.is_possible(), "it was there before");

    let mut stale = History::new();
    let first = stale.given((0, 1), 1);
    stale.settled((2, 3), first, 1, Outcome::Committed);
    stale.is((3, 4), EffectState::Executing, 1);
    assert!(stale.is_possible(), "in the moment that it was answered");
    stale.is((5, 6), EffectState::Executing, 1);
    assert!(!stale.is_possible(), "a reader that lags behind");
}

#[test]
fn what_nobody_was_told_of_may_have_happened_any_time_after_and_not_before() {
    let history = |asked| {
        let mut history = History::new();
        let first = history.given((0, 1), 1);
        history.untold(asked, Call::Settle { by: first, fence: 1, outcome: Outcome::Failed });
        history.no((2, 3), Code::InProgress);
        history.given((8, 9), 2);
        history
    };
    assert!(history(4).is_possible());
    assert!(history(1).is_possible());
    assert!(!history(10).is_possible());
    let mut never = History::new();
    never.untold(0, Call::Run { lease: LEASE });
    never.told((1, 2), Call::Read, Answer::Is(None));
    assert!(never.is_possible());
    never.is((3, 4), EffectState::Executing, 1);
    never.told((5, 6), Call::Read, Answer::Is(None));
    assert!(!never.is_possible());
}

#[test]
fn a_lease_is_over_when_it_is_over() {
    let mut early = History::new();
    early.given((0, 1), 1);
    early.no((LEASE - 9, LEASE), Code::Ambiguous);
    assert!(!early.is_possible(), "it was live all the time");
    let mut late = History::new();
    late.given((0, 1), 1);
    late.no((LEASE + 1, LEASE + 2), Code::InProgress);
    assert!(!late.is_possible(), "it was over all the time");
    for code in [Code::Ambiguous, Code::InProgress] {
        let mut between = History::new();
        between.given((0, 1), 1);
        between.no((LEASE - 1, LEASE + 1), code);
        assert!(between.is_possible(), "it ended meanwhile");
    }
    let mut longer = History::new();
    let by = longer.given((0, 1), 1);
    let renew = Call::Renew { by, fence: 1, lease: LEASE };
    longer.told((50, 51), renew, Answer::Renewed { until: 50 + LEASE });
    longer.no((LEASE + 1, LEASE + 2), Code::InProgress);
    assert!(longer.is_possible());
    longer.told((70, 71), renew, Answer::Renewed { until: 60 });
    assert!(!longer.is_possible(), "time was taken away");
}

#[test]
fn whoever_was_given_an_attempt_says_what_became_of_it_and_nobody_else() {
    let mut history = History::new();
    let first = history.given((0, 1), 1);
    history.no((LEASE + 1, LEASE + 2), Code::Ambiguous);
    let resolve = Call::Resolve { fence: 1, happened: false };
    history.told((70, 71), resolve, Answer::Settled { state: EffectState::Failed, repeated: false });
    let second = history.given((72, 73), 2);
    let late = Call::Settle { by: first, fence: 1, outcome: Outcome::Committed };
    history.told((74, 75), late, Answer::Refused(Code::Fenced));
    history.told((76, 77), resolve, Answer::Refused(Code::NotAmbiguous));
    assert!(history.is_possible());
    let mut other = History(history.0.clone());
    other.settled((78, 79), first, 2, Outcome::Committed);
    assert!(!other.is_possible(), "not the holder");
    history.settled((78, 79), second, 2, Outcome::Committed);
    assert!(history.is_possible());
    history.told((80, 81), late, Answer::Settled { state: EffectState::Committed, repeated: false });
    assert!(!history.is_possible(), "one that was fenced");
}

/// Hundreds of clients that meet, where an order is there, are no trouble.
#[test]
fn an_order_is_found_among_many_at_once() {
    let mut history = History::new();
    let mut at = 0;
    for fence in 1..=200 {
        let by = history.given((at, at + 40), fence);
        for _ in 0..64 {
            history.no((at, at + 100), Code::InProgress);
        }
        if fence % 50 == 0 {
            history.untold(at, Call::Run { lease: LEASE });
        }
        history.settled((at + 41, at + 50), by, fence, Outcome::Failed);
        at += 51;
    }
    assert!(history.is_possible());
}

#[test]
fn operations_read_back_as_printed() {
    let by = 7;
    let calls = [
        Call::Run { lease: 5 },
        Call::Settle { by, fence: 2, outcome: Outcome::Ambiguous },
        Call::Renew { by, fence: 2, lease: 9 },
        Call::Resolve { fence: 3, happened: true },
        Call::Lapse,
        Call::Read,
    ];
    let answers = [
        Answer::Given { fence: 2, until: 5 },
        Answer::Settled { state: EffectState::Failed, repeated: true },
        Answer::Renewed { until: 8 },
        Answer::Lapsed(true),
        Answer::Is(None),
        Answer::Is(Some((EffectState::Executing, 4))),
        Answer::Refused(Code::InProgress),
        Answer::Unknown,
    ];
    for (call, answer) in calls.iter().flat_map(|call| answers.map(|answer| (*call, answer))) {
        for answered in [None, Some(12)] {
            let operation = Operation { id: 1, invoked: -3, answered, call, answer };
            assert_eq!(Operation::parse(&operation.to_string()), Some(operation));
        }
    }
    assert_eq!(Operation::parse("1 2 3 read absent more"), None);
}
