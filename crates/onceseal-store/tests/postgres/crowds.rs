//! Where many commands wait, two lanes decide at once: what each promises alone
//! holds of both.

use std::collections::BTreeMap;
use std::thread;

use onceseal_core::code::Code;
use onceseal_core::journal::Kind;
use onceseal_core::reply::Reply;
use onceseal_servers::server;

use crate::base::*;

const KEYS: usize = 60;
/// As often as each key is wanted, by each of two processes.
const TIMES: u8 = 12;

#[test]
fn p03_of_a_crowd_in_two_processes_one_gets_each_key() {
    let database = server().new_database();
    let stores = [open(&database, "one"), open(&database, "two")];
    let wanted: Vec<String> = (0..KEYS).map(|n| format!("key {n}")).collect();
    let taken = thread::scope(|scope| {
        let threads = stores.each_ref().map(|store| {
            let wanted = &wanted;
            scope.spawn(move || {
                // Submitted without waiting for any, so that they crowd.
                let tickets: Vec<_> = (0..TIMES)
                    .flat_map(|by| wanted.iter().map(move |key| (key, by)))
                    .map(|(key, by)| (key, store.submit(reserve(key, by)).expect("taken")))
                    .collect();
                let mut taken: BTreeMap<&String, usize> = BTreeMap::new();
                for (key, ticket) in tickets {
                    match ticket.wait() {
                        Ok(Reply::Attempt(_)) => *taken.entry(key).or_default() += 1,
                        answer => assert_eq!(code(&answer), Some(Code::InProgress), "{answer:?}"),
                    }
                }
                taken
            })
        });
        threads.map(|thread| thread.join().expect("told"))
    });
    for key in &wanted {
        let times: usize = taken.iter().filter_map(|taken| taken.get(key)).sum();
        assert_eq!(times, 1, "{key} was taken once");
        let acquired = events_of(&stores[0], key)
            .iter()
            .filter(|event| {
                event.event.as_ref().is_some_and(|event| event.body.kind() == Kind::EffectAcquired)
            })
            .count();
        assert_eq!(acquired, 1, "{key} was recorded as taken once");
    }
    stores.iter().for_each(assert_sound);
}
