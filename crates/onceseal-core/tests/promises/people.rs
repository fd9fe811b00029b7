//! Who counts as a person, whatever they are asked to say.

use onceseal_core::approval::{Identity, Revocation, Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Outcome, Resolve};
use onceseal_core::journal::Body;
use onceseal_core::policy::Activate;
use onceseal_core::reply::Reply;
use onceseal_core::store::Accept;

use crate::doing::{asked, attempt};
use crate::{PAY, Real, World, pay, pay_world, refused, send};

fn person(text: &str) -> Identity {
    Identity::parse(text).expect("a person")
}

fn accept(by: &str) -> Command {
    Command::Accept(Accept { seen: 9, found: 3, person: person(by), reason: "restored".into() })
}

/// What this person's word on an unknown outcome comes to.
fn resolved(world: &mut World<'_>, by: &str) -> Reply {
    let held = attempt(world.call(send(1)));
    world.settle(&held, Outcome::Ambiguous);
    world.run(Command::Resolve(Resolve {
        effect: held.effect,
        fence: held.fence,
        happened: true,
        reason: "looked at the remote".into(),
        evidence: None,
        person: person(by),
    }))
}

#[test]
fn p02_the_operating_system_proves_the_account_that_owns_the_store_and_nobody_else() {
    for (by, counts) in [("os:owner", true), ("os:mallory", false), ("host:ada", true)] {
        let mut world = pay_world();
        let (_, approval) = asked(world.call(pay(5)));
        let answered = !matches!(world.answer(approval, by, Said::Yes), Reply::Refused(_));
        assert_eq!(answered, counts, "{by} answers");

        let mut world = pay_world();
        let (_, approval) = asked(world.call(pay(5)));
        let revocation = Revocation { approval, person: person(by) };
        let revoked = !matches!(world.run(Command::Revoke(revocation)), Reply::Refused(_));
        assert_eq!(
            (revoked, world.approval(approval).status == Status::Revoked),
            (counts, counts),
            "{by} revokes"
        );

        let mut world = pay_world();
        let settled = !matches!(resolved(&mut world, by), Reply::Refused(_));
        let state = world.effect("send:1").expect("an effect").state;
        assert_eq!((settled, state == EffectState::Committed), (counts, counts), "{by} resolves");

        let mut world = pay_world();
        let accepted = world.run(accept(by)) == (Reply::Done { changed: true });
        assert_eq!(accepted, counts, "{by} accepts");
    }
}

#[test]
fn p02_operators_alone_resolve_revoke_and_accept() {
    let policy = format!("{PAY}\ngroups: {{ ops: [ \"host:opal\" ] }}\noperators: [ops]\n");
    for (by, counts) in [("host:opal", true), ("host:ada", false), ("os:owner", false)] {
        let mut world = World::new(&Real, &policy);
        assert_eq!(world.run(accept(by)) == (Reply::Done { changed: true }), counts, "{by} accepts");
        assert_eq!(!matches!(resolved(&mut world, by), Reply::Refused(_)), counts, "{by} resolves");
    }
}

#[test]
fn p02_the_agent_that_acts_cannot_say_what_became_of_it() {
    let mut world = pay_world();
    let agent = send(1).agent;
    let reply = resolved(&mut world, &format!("host:{agent}"));
    assert_eq!(refused(reply).code, Code::AgentCannotAnswer);
    assert_eq!(world.effect("send:1").expect("an effect").state, EffectState::Ambiguous);
}

#[test]
fn p15_an_activation_records_who_did_it_and_how_they_were_proven() {
    let mut world = pay_world();
    let policy = world.policy();
    for (by, counts) in [("os:owner", true), ("host:ada", true), ("os:mallory", false), ("host: ", false)] {
        let activate = Activate { policy: policy.clone(), again: true, person: Some(person(by)) };
        world.activate(&PAY.replace("lease: 2m", "lease: 1m"));
        let before = world.events.len();
        let done = !matches!(world.run(Command::Activate(activate)), Reply::Refused(_));
        assert_eq!(done, counts, "{by}");
        let recorded = world.events[before..].iter().find_map(|recorded| match &recorded.event.body {
            Body::PolicyActivated(data, sealed) => Some((data.proof, sealed.person.clone())),
            _ => None,
        });
        let expected = counts.then(|| (Some(person(by).proof), Some(by.to_owned())));
        assert_eq!(recorded, expected, "{by}");
    }
}
