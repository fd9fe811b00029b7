//! The tool of the scenarios, and the remote where its drafts are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use onceseal::core::effect::RemoteReceipt;
use onceseal::core::hash::Hash;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::operation::{Revisions, Scope};
use onceseal::core::time::Timestamp;
use onceseal::operations::{Answering, Current, Directory, Handler, Job, Looked, Question, Subject, Word};
use onceseal::store::clock::{Clock, ManualClock};
use onceseal::{Done, Failure, Performed, Principal};
use sha2::{Digest, Sha256};

pub(crate) const TENANT: &str = "tenant-a";
pub(crate) const TOOL: &str = "create_refund_draft";

/// The contract, with one revision changed if asked.
pub(crate) fn contract(changed: &BTreeMap<String, String>) -> Object {
    let text = format!(
        r#"{{"name":"{TOOL}","source":"refunds","business_rule":"the order is paid",
        "recovery":"ask","settle":"2s","request_timeout":"1s","lease":"30s",
        "input":{{"type":"object","additionalProperties":false,"required":["order_ref","reason"],"properties":{{
            "order_ref":{{"type":"string","maxLength":64,"pattern":"\\S"}},
            "reason":{{"enum":["damaged","duplicate","other"]}}}}}},
        "output":{{"type":"object","additionalProperties":false,
            "required":["draft_id","order_ref","reason"],"properties":{{
            "draft_id":{{"type":"string","maxLength":64,"pattern":"^DRAFT-[1-9]\\d*$"}},
            "order_ref":{{"type":"string","maxLength":64}},
            "reason":{{"enum":["damaged","duplicate","other"]}}}}}},
        "output_bytes":384,"output_depth":1,"output_equals":{{"/order_ref":"order_ref","/reason":"reason"}}}}"#
    );
    let Ok(Value::Object(mut contract)) = json::read(text.as_bytes(), &Limits::DATA) else {
        panic!("no contract: {text}")
    };
    let mut revisions = Object::new();
    for (name, given) in [
        ("input", "refund-draft-input-v1"),
        ("output", "refund-draft-output-v2"),
        ("effect", "create-refund-draft-v1"),
        ("handler", "refund-draft-handler-v2"),
        ("producer", "refunds-mock-v2"),
        ("policy", "refund-draft-policy-v1"),
    ] {
        revisions.insert(name, changed.get(name).map_or(given, String::as_str));
    }
    contract.insert("revisions", Value::Object(revisions));
    contract
}

/// What a directory of people answers.
pub(crate) enum People {
    /// These roles, look-up by look-up; the last is repeated. Nobody where none.
    Answers(Vec<Option<Vec<String>>>),
    /// Whoever is named, with these roles.
    Named(Vec<Subject>),
    /// It cannot tell.
    CannotTell,
    /// This, whoever is asked for.
    Wrong(Subject),
}

/// What the world outside knows and says.
pub(crate) struct Outside {
    /// By name: whose it is, and its status.
    pub(crate) orders: BTreeMap<&'static str, (&'static str, String)>,
    /// These orders and no other may be touched.
    pub(crate) allowed: Option<Vec<String>>,
    /// What is said of the resource instead, if anything.
    pub(crate) decision: Option<Option<bool>>,
    pub(crate) people: Option<People>,
    pub(crate) lookups: usize,
    /// Drafts by provider key, and how often each was asked for.
    pub(crate) drafts: BTreeMap<String, (Done, u32)>,
    /// The remote cannot store anything.
    pub(crate) full: bool,
}

#[derive(Clone)]
pub(crate) struct World {
    outside: Arc<Mutex<Outside>>,
    clock: Arc<ManualClock>,
}

impl World {
    pub(crate) fn new(clock: Arc<ManualClock>) -> World {
        let orders = [("ORDER-7", "user-1"), ("ORDER-8", "user-2")];
        let orders = orders.map(|(order, owner)| (order, (owner, "paid".to_owned())));
        let outside = Outside {
            orders: BTreeMap::from(orders),
            allowed: None,
            decision: None,
            people: None,
            lookups: 0,
            drafts: BTreeMap::new(),
            full: false,
        };
        World { outside: Arc::new(Mutex::new(outside)), clock }
    }

    pub(crate) fn outside(&self) -> MutexGuard<'_, Outside> {
        self.outside.lock().expect("whole")
    }

    fn draft(&self, job: &Job) -> Done {
        let order = text(job.args(), "order_ref");
        let reason = text(job.args(), "reason");
        let request =
            Scope { tenant: TENANT, subject: &job.principal().subject(), tool: TOOL, key: job.key() }
                .request(
                    &json::canonical(&job.args().clone().into()),
                    Revisions {
                        input: "refund-draft-input-v1",
                        output: "refund-draft-output-v2",
                        effect: "create-refund-draft-v1",
                    },
                );
        let identity = identity(&job.principal().subject(), job.key(), request);
        let number = u64::from_str_radix(&identity[..12], 16).expect("hex") + 1;
        let mut data = Object::new();
        data.insert("draft_id", format!("DRAFT-{number}"));
        data.insert("order_ref", order);
        data.insert("reason", reason);
        let remote = RemoteReceipt {
            observed_at: Timestamp::from_micros(self.clock.now().wall_us),
            receipt_id: Some(format!("refund-receipt-{}", &identity[..24])),
            request_id: Some(format!("refund-request-{}", &identity[24..48])),
            revision: Some(format!("draft-{number}-r1")),
        };
        Done { value: Value::Object(data), remote }
    }
}

/// The reference's name of an effect: over the scope and the request.
fn identity(subject: &str, key: &str, request: Hash) -> String {
    let scope = [TENANT, subject, TOOL, key].map(Value::from);
    let mut whole = Object::new();
    let request = request.to_string();
    whole.insert("request_sha256", request.strip_prefix("sha256:").unwrap_or(&request));
    whole.insert("scope", Value::List(scope.to_vec()));
    let digest = Sha256::digest(json::canonical(&Value::Object(whole)).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(arguments: &Object, name: &str) -> String {
    arguments.get(name).and_then(Value::as_text).unwrap_or_default().to_owned()
}

impl Handler for World {
    fn authorizes<'a>(&'a self, who: Current<'a>, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        let outside = self.outside();
        let order = text(arguments, "order_ref");
        let answer = match (&outside.decision, &outside.allowed) {
            (Some(said), _) => *said,
            (None, Some(allowed)) => Some(allowed.contains(&order)),
            (None, None) => {
                let owner = outside.orders.get(order.as_str()).map(|(owner, _)| *owner);
                let admin = who.roles.iter().any(|role| role == "support_admin");
                Some(owner.is_some_and(|owner| admin || who.principal.user.as_deref() == Some(owner)))
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn permits<'a>(&'a self, _: &'a Principal, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        let outside = self.outside();
        let order = text(arguments, "order_ref");
        let paid = outside.orders.get(order.as_str()).is_some_and(|(_, status)| status == "paid");
        Box::pin(std::future::ready(Some(paid)))
    }

    fn looks_again(&self) -> bool {
        true
    }

    fn perform(&self, job: Job) -> Answering<'_, Performed> {
        Box::pin(async move {
            let draft = self.draft(&job);
            let mut outside = self.outside();
            if outside.full {
                return Err(Failure::unknown("the remote failed"));
            }
            let (first, asked) =
                outside.drafts.entry(job.provider_key().to_owned()).or_insert_with(|| (draft, 0));
            *asked += 1;
            Ok(first.clone())
        })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        let outside = self.outside();
        let found = outside.drafts.get(&question.provider_key);
        let word = found.map_or(Word::Absent, |(draft, _)| Word::Committed(draft.clone()));
        Box::pin(std::future::ready(Some(word)))
    }
}

impl Directory for World {
    fn look_up<'a>(&'a self, tenant: &'a str, subject: &'a str) -> Answering<'a, Looked> {
        let mut outside = self.outside();
        let at = outside.lookups;
        outside.lookups += 1;
        let is = |roles: &[String]| {
            Looked::Is(Subject {
                tenant: tenant.to_owned(),
                subject: subject.to_owned(),
                roles: roles.to_vec(),
            })
        };
        let looked = match &outside.people {
            None => is(&[]),
            Some(People::CannotTell) => Looked::CannotTell,
            Some(People::Wrong(subject)) => Looked::Is(subject.clone()),
            Some(People::Named(people)) => {
                let found =
                    people.iter().find(|person| (&*person.tenant, &*person.subject) == (tenant, subject));
                found.map_or(Looked::Nobody, |person| Looked::Is(person.clone()))
            }
            Some(People::Answers(answers)) => match answers.get(at).or(answers.last()) {
                Some(Some(roles)) => is(roles),
                _ => Looked::Nobody,
            },
        };
        Box::pin(std::future::ready(looked))
    }
}
