//! What the checker looks at in every state.

use stateright::Property;

use crate::ghost::PROMISES;
use crate::protocol::{Bounds, Protocol, State};

/// Every promise, as a property that always holds.
pub(crate) fn promised() -> Vec<Property<Protocol>> {
    fn holds<const N: usize>(_: &Protocol, state: &State) -> bool {
        state.broken != Some(PROMISES[N])
    }
    macro_rules! all {
        ($($n:literal)*) => { vec![$(Property::always(PROMISES[$n], holds::<$n>)),*] };
    }
    let all = all![0 1 2 3 4 5 6 7 8 9 10 11 12 13];
    assert_eq!(all.len(), PROMISES.len());
    all
}

/// What happens in some state: the promises do not hold because nothing does.
pub(crate) fn reached(bounds: Bounds) -> Vec<Property<Protocol>> {
    let sometimes = |name, so: fn(&Protocol, &State) -> bool| Property::sometimes(name, so);
    let mut all = vec![
        sometimes("a second attempt", |_, state| state.keys[0].fence == 2),
        sometimes("a fenced holder", |_, state| state.holds.iter().any(|hold| state.fenced(hold))),
    ];
    if bounds.holders > 1 {
        all.push(sometimes("both keys held", |_, state| {
            let held = |key| state.holds.iter().any(|hold| hold.key == key);
            held(0) && held(1)
        }));
    }
    if bounds.asks > 0 {
        all.push(sometimes("a used approval", |_, state| state.asks.iter().any(|ask| ask.used)));
        all.push(sometimes("a remembered no", |_, state| state.asks.iter().any(|ask| ask.denied)));
    }
    if bounds.asks > 1 {
        all.push(sometimes("asked anew under another rule", |_, state| {
            state.asks.len() == 2 && state.asks[0].used && state.asks[1].policy == 1 && state.asks[1].yes
        }));
    }
    if bounds.remote {
        all.push(sometimes("an effect without a holder", |_, state| {
            state.keys[0].happened && state.holds.is_empty()
        }));
    }
    all
}
