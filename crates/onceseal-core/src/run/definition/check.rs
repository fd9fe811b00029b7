//! What the members of a definition mean together: that a run can always go on,
//! and come to an end.

use std::collections::BTreeSet;

use super::read::Draft;
use crate::run::document::nearest_of;

/// Adds what is wrong to the draft's errors.
pub(super) fn check(draft: &mut Draft) {
    let mut found = Vec::new();
    let mut wrong = |path: String, problem: String| found.push((path, problem));
    // Where it is not known what follows on what, nothing is said of the whole.
    let mut is_sound = true;
    let initial = draft.initial.as_ref().filter(|_| !draft.states.is_empty());
    if let Some(initial) = initial {
        match draft.states.get(initial) {
            None => wrong("initial".to_owned(), no_state(draft, initial)),
            Some(state) if state.terminal => {
                wrong("initial".to_owned(), format!("`{initial}` is terminal: a run could do nothing"));
            }
            Some(_) => {}
        }
    }
    for (name, state) in draft.states.iter().filter(|(_, state)| !state.terminal) {
        let path = |member: &str| format!("states.{name}.{member}");
        match &state.to {
            None => is_sound = false,
            Some(to) if to.is_empty() => {
                is_sound = false;
                let problem = "is empty, so a run would end there: say `terminal: true`, or what may follow";
                wrong(path("to"), problem.to_owned());
            }
            Some(to) => {
                for (at, next) in to.iter().enumerate().filter(|(_, next)| !draft.states.contains_key(*next))
                {
                    is_sound = false;
                    wrong(path(&format!("to[{at}]")), no_state(draft, next));
                }
            }
        }
        // What may follow is not told apart from what was meant to.
        let to = state.to.as_ref().filter(|to| !to.is_empty());
        let to = to.filter(|to| to.iter().all(|next| draft.states.contains_key(next)));
        let targets =
            state.commands.iter().filter_map(|(name, to)| Some((format!("commands.{name}"), to.as_ref()?)));
        let interrupted = state.interrupted.iter().map(|next| ("interrupted".to_owned(), next));
        for (member, next) in interrupted.chain(targets) {
            if !draft.states.contains_key(next) {
                wrong(path(&member), no_state(draft, next));
            } else if to.is_some_and(|to| !to.contains(next)) {
                let problem = format!("`{next}` may not follow on `{name}`: add it to `to`, or name another");
                wrong(path(&member), problem);
            }
        }
    }
    let start = initial.filter(|it| draft.states.get(*it).is_some_and(|state| !state.terminal));
    if let Some(initial) = start.filter(|_| is_sound) {
        let reached = reached(draft, BTreeSet::from([initial.as_str()]), |(from, to)| (from, to));
        for name in draft.states.keys().filter(|name| !reached.contains(name.as_str())) {
            wrong(format!("states.{name}"), format!("is never reached from `{initial}`"));
        }
        let ends = draft.states.iter().filter(|(_, state)| state.terminal).map(|(name, _)| name.as_str());
        let end = self::reached(draft, ends.collect(), |(from, to)| (to, from));
        for name in draft.states.keys().filter(|name| !end.contains(name.as_str())) {
            let problem = "is a dead end: no terminal state can be reached from it";
            wrong(format!("states.{name}"), problem.to_owned());
        }
    }
    found.into_iter().for_each(|(path, problem)| draft.wrong(path, problem));
}

/// The states that are reached from some along edges, as they are turned.
fn reached<'a>(
    draft: &'a Draft,
    mut reached: BTreeSet<&'a str>,
    turned: impl Fn((&'a str, &'a str)) -> (&'a str, &'a str),
) -> BTreeSet<&'a str> {
    let states = draft.states.iter();
    let edges =
        states.flat_map(|(from, state)| state.to.iter().flatten().map(|to| (from.as_str(), to.as_str())));
    let edges: Vec<_> = edges.map(turned).collect();
    loop {
        let next = edges.iter().filter(|(from, _)| reached.contains(from)).map(|(_, to)| *to);
        let new: Vec<_> = next.filter(|to| !reached.contains(to)).collect();
        if new.is_empty() {
            return reached;
        }
        reached.extend(new);
    }
}

fn no_state(draft: &Draft, state: &str) -> String {
    let hint = nearest_of(state, draft.states.keys().map(String::as_str));
    let hint = match hint {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => String::new(),
    };
    format!("`{state}` is no state of this definition{hint}")
}
