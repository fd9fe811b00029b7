//! Asking people, and what their answers come to.

use onceseal_core::action::{ActionState, Answer as Ended};
use onceseal_core::approval::Identity;
use onceseal_core::approval::{Answer, Proof, Revocation, Revoke, Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::ApprovalId;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use super::world::{World, big, call, code, host, pay};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "approvals":
    nothing_runs_before_a_person_has_said_yes
    identical_proposals_share_one_request
    nobody_is_asked_about_a_key_that_would_be_refused
    a_quorum_counts_different_people
    an_answer_given_twice_counts_once
    one_no_denies_and_nobody_is_asked_again_before_the_request_ends
    only_the_entitled_answer_and_only_what_they_were_shown
    the_first_decision_stands
    a_granted_approval_can_be_taken_back
    a_request_ends_with_its_time_and_its_action_with_it
    an_answer_after_the_end_is_refused_and_the_end_is_kept
}

fn status(world: &World<'_>, id: ApprovalId) -> Result<Status, Failure> {
    Ok(world.approval(id)?.status)
}

fn nothing_runs_before_a_person_has_said_yes(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.asked(&big("k"))?;
    let row = world.approval(approval)?;
    ensure_eq!((row.status, row.action), (Status::Pending, action), "a request waits for its answer");
    take!(world.action(action)?.state, ActionState::Waiting { approval: id } if id == approval => (),
        "its action waits for it");
    let mut own = big("k");
    own.action = Some(action);
    take!(world.run(&own)?, Reply::ApprovalNeeded { joined: true, .. } => (), "nobody has answered");
    let mut other = pay("k");
    other.amount = 501;
    other.approval = Some(approval);
    ensure_eq!(code(&world.run(&other)?), Some(Code::ApprovalMismatch), "another wish does not pass either");
    let effect = world.store.read(|snapshot| snapshot.stream(&world.effect_of("pay:k")))?;
    ensure_eq!(effect, onceseal_core::view::Loaded::Absent, "no attempt was made");
    Ok(())
}

fn identical_proposals_share_one_request(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.asked(&big("k"))?;
    let events = world.log()?.len();
    take!(world.run(&big("k"))?,
        Reply::ApprovalNeeded { action: a, approval: b, joined: true, .. } if (a, b) == (action, approval) => (),
        "the second joins the first");
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    world.answer(approval, "ann", Said::Yes)?;
    let taken = world.attempt(&big("k"))?;
    ensure_eq!((taken.action, taken.approval), (action, Some(approval)), "once granted that action runs");
    Ok(())
}

fn nobody_is_asked_about_a_key_that_would_be_refused(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.attempt(&pay("k"))?;
    let refusal = world.refusal(&big("k"))?;
    ensure_eq!((refusal.code, refusal.approval), (Code::EffectKeyConflict, None), "the key is taken");
    Ok(())
}

fn a_quorum_counts_different_people(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let wire = call("wire", "k", 1);
    let (_, approval) = world.asked(&wire)?;
    let reply = |status, yes| Reply::Approval { status, yes, quorum: 2, repeated: false };
    ensure_eq!(world.answer(approval, "ann", Said::Yes)?, reply(Status::Pending, 1), "one of two");
    take!(world.run(&wire)?, Reply::ApprovalNeeded { .. } => (), "one is not enough");
    world.answer(approval, "ann", Said::Yes)?;
    ensure_eq!(status(&world, approval)?, Status::Pending, "one person is one, however often");
    ensure_eq!(world.answer(approval, "bob", Said::Yes)?, reply(Status::Granted, 2), "two of two");
    world.attempt(&wire)?;
    Ok(())
}

fn an_answer_given_twice_counts_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, approval) = world.asked(&call("wire", "k", 1))?;
    world.answer(approval, "ann", Said::Yes)?;
    let events = world.log()?.len();
    ensure_eq!(
        world.answer(approval, "ann", Said::Yes)?,
        Reply::Approval { status: Status::Pending, yes: 1, quorum: 2, repeated: true },
        "repeating one's own answer succeeds"
    );
    ensure_eq!(world.log()?.len(), events, "and changes nothing");
    Ok(())
}

fn one_no_denies_and_nobody_is_asked_again_before_the_request_ends(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.asked(&big("k"))?;
    world.answer(approval, "bob", Said::No)?;
    ensure_eq!(status(&world, approval)?, Status::Denied, "one no is enough");
    take!(world.action(action)?.state,
        ActionState::Ended { result: Ended::Denied, code: Some(Code::ApprovalDenied), .. } => (),
        "its action has ended");
    let mut again = big("k");
    again.note = Some("please");
    let refusal = world.refusal(&again)?;
    ensure_eq!(
        (refusal.code, refusal.approval),
        (Code::ApprovalDenied, Some(approval)),
        "the same wish again"
    );
    world.pass(Span::minutes(15));
    ensure_eq!(code(&world.run(&again)?), Some(Code::ApprovalDenied), "up to the end of the request");
    world.pass(Span::micros(1));
    let (_, second) = world.asked(&again)?;
    ensure!(second != approval, "then a person may be asked anew");
    Ok(())
}

fn only_the_entitled_answer_and_only_what_they_were_shown(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let mut by_cy = big("k");
    by_cy.agent = "cy";
    let (_, approval) = world.asked(&by_cy)?;
    let shown = world.approval(approval)?.private.bound.binding.unwrap_or(Hash([0; 32]));
    let answer = Answer { approval, person: host("ann"), said: Said::Yes, shown, reason: None };
    let events = world.log()?.len();
    let os = |name: &str| Identity { proof: Proof::Os, name: name.to_owned() };
    for (wrong, code) in [
        (Answer { person: host("zoe"), ..answer.clone() }, Code::NotEntitled),
        (Answer { person: os("ann"), ..answer.clone() }, Code::NotEntitled),
        (Answer { person: host("cy"), ..answer.clone() }, Code::AgentCannotAnswer),
        (Answer { person: host(""), ..answer.clone() }, Code::PersonInvalid),
        (Answer { shown: Hash([7; 32]), ..answer.clone() }, Code::ShownDiffers),
        (Answer { approval: ApprovalId([7; 16]), ..answer.clone() }, Code::ApprovalUnknown),
    ] {
        let person = wrong.person.to_string();
        ensure_eq!(world.refused(Command::Answer(wrong))?.code, code, "{person} does not count");
        ensure_eq!(status(&world, approval)?, Status::Pending, "{person} changes nothing");
    }
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    take!(world.command(Command::Answer(answer))?, Reply::Approval { status: Status::Granted, .. } => (),
        "ann is entitled and was shown what is stored");
    Ok(())
}

fn the_first_decision_stands(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, denied) = world.asked(&big("a"))?;
    world.answer(denied, "ann", Said::No)?;
    let (_, used) = world.granted(&big("b"))?;
    world.attempt(&big("b"))?;
    for (approval, before) in [(denied, Status::Denied), (used, Status::Consumed)] {
        for said in [Said::Yes, Said::No] {
            let row = world.stored(&StreamId::approval(approval))?;
            let refusal = world.refused(world.to_answer(approval, "bob", said)?)?;
            ensure_eq!(
                (refusal.code, refusal.status),
                (Code::ApprovalDecided, Some(before)),
                "bob says {said}"
            );
            ensure_eq!(world.stored(&StreamId::approval(approval))?, row, "it changes nothing");
        }
    }
    Ok(())
}

fn a_granted_approval_can_be_taken_back(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, by_no) = world.granted(&big("a"))?;
    world.answer(by_no, "bob", Said::No)?;
    let (_, by_operator) = world.granted(&big("b"))?;
    let revoke = |person: &str| Command::Revoke(Revocation { approval: by_operator, person: host(person) });
    ensure_eq!(world.refused(revoke("ann"))?.code, Code::NotOperator, "ann is no operator");
    ensure_eq!(status(&world, by_operator)?, Status::Granted, "so nothing changes");
    world.command(revoke("olga"))?;
    for (id, approval, why) in [("a", by_no, Revoke::Approver), ("b", by_operator, Revoke::Operator)] {
        let row = world.approval(approval)?;
        ensure_eq!((row.status, row.revoked), (Status::Revoked, Some(why)), "it is taken back");
        take!(world.action(row.action)?.state,
            ActionState::Ended { result: Ended::Blocked, code: Some(Code::ApprovalRevoked), .. } => (),
            "its action has ended");
        let mut presented = big(id);
        presented.approval = Some(approval);
        ensure_eq!(code(&world.run(&presented)?), Some(Code::ApprovalRevoked), "it permits nothing");
    }
    Ok(())
}

fn a_request_ends_with_its_time_and_its_action_with_it(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.asked(&big("k"))?;
    let lapse = || world.command(Command::Lapse(StreamId::approval(approval)));
    world.pass(Span::minutes(15));
    ensure_eq!(lapse()?, Reply::Done { changed: false }, "its end is inclusive");
    world.pass(Span::micros(1));
    ensure_eq!(lapse()?, Reply::Done { changed: true }, "its time is over");
    ensure_eq!(lapse()?, Reply::Done { changed: false }, "it is a fact already");
    ensure_eq!(status(&world, approval)?, Status::Expired, "the request has expired");
    take!(world.action(action)?.state,
        ActionState::Ended { result: Ended::Blocked, code: Some(Code::ApprovalExpired), .. } => (),
        "and its action has ended");
    Ok(())
}

fn an_answer_after_the_end_is_refused_and_the_end_is_kept(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, in_time) = world.asked(&big("a"))?;
    world.pass(Span::minutes(15));
    take!(world.answer(in_time, "ann", Said::Yes)?, Reply::Approval { status: Status::Granted, .. } => (),
        "the end is inclusive");
    let (action, late) = world.asked(&big("b"))?;
    world.pass(Span::minutes(16));
    let refusal = world.refused(world.to_answer(late, "ann", Said::Yes)?)?;
    ensure_eq!(
        (refusal.code, refusal.status),
        (Code::ApprovalExpired, Some(Status::Expired)),
        "its time is over"
    );
    ensure_eq!(status(&world, late)?, Status::Expired, "the end is kept although the answer is refused");
    take!(world.action(action)?.state, ActionState::Ended { code: Some(Code::ApprovalExpired), .. } => (),
        "its action has ended");
    Ok(())
}
