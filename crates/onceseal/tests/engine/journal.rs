//! What was written is what is read back, and it verifies: section K.

use std::collections::BTreeMap;

use onceseal::core::hash::Hash;
use onceseal::core::journal::{chain_hash, open_text, seal_hash, sealed_text};
use onceseal::core::stream::StreamId;
use onceseal::{Control, Failure};

use crate::support::{World, pay};

/// Rebuilds every hash of the log from what is stored. Returns how many events
/// and streams there are.
fn verify(control: &Control) -> (usize, usize) {
    let mut heads: BTreeMap<StreamId, (u64, Hash)> = BTreeMap::new();
    let events = control.log(0, 100_000).expect("readable");
    for (position, stored) in (1..).zip(&events) {
        assert_eq!(stored.position, position, "no position is missing");
        let stamp = &stored.stamp;
        let genesis = (0, control.store().tenant().genesis(&stamp.stream));
        let (sequence, prior) = heads.get(&stamp.stream).copied().unwrap_or(genesis);
        assert_eq!(stamp.sequence, sequence + 1, "no fork, no gap");
        let event = stored.event.as_ref().expect("it decodes");
        assert_eq!(chain_hash(&open_text(stamp, event, prior, stored.seal)), stored.hash);
        match (stored.salt, stored.seal, sealed_text(event)) {
            (Some(salt), Some(seal), Some(text)) => assert_eq!(seal_hash(&salt, &text), seal),
            (None, None, None) => {}
            other => panic!("{other:?}"),
        }
        heads.insert(stamp.stream, (stamp.sequence, stored.hash));
    }
    for (stream, (sequence, hash)) in &heads {
        let head = control.store().read(|snapshot| {
            Ok(onceseal::store::read::row_of(snapshot.stream(stream)?).map(|stored| stored.head))
        });
        let head = head.expect("readable").expect("a row");
        assert_eq!((head.sequence, head.hash), (*sequence, *hash));
    }
    (events.len(), heads.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ua_143_sixteen_callers_write_one_chain_a_stream_that_verifies_as_read_back() {
    for world in World::both().await {
        let callers: Vec<_> = (0..16)
            .map(|caller| {
                let control = world.control.clone();
                tokio::spawn(async move {
                    for n in 0..8 {
                        // Half of the keys are fought over.
                        let order =
                            if n % 2 == 0 { format!("shared{n}") } else { format!("own{caller}-{n}") };
                        let call = pay(&control, &order, 5).arg("note", format!("{caller}: \u{1F600} {n}"));
                        let _ = call.execute(|_| async { Ok::<_, Failure>("paid") }).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.expect("no panic");
        }
        let (events, streams) = verify(&world.control);
        // Each attempt: two events of its effect, two of its action.
        let effects = 16 * 4 + 4;
        assert!(events >= effects * 4 && streams >= effects * 2, "{events} events in {streams} streams");
    }
}

#[tokio::test]
async fn a_time_of_a_microsecond_is_kept_and_hashed_as_it_was() {
    for world in World::both().await {
        world.clock.advance(1);
        world.pay("o", 5).execute(|_| async { Ok::<_, Failure>(()) }).await.expect("committed");
        let last = world.control.log(0, 100).expect("readable").pop().expect("an event");
        assert_eq!(last.stamp.at.to_string(), "2026-01-01T00:00:00.000001Z");
        verify(&world.control);
    }
}
