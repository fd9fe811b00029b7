//! The cases of the persistent tool runtime about what is told of an operation:
//! packages, their digests, what a validator finds, what providers are given.

use onceseal_core::hash::Hash;
use onceseal_core::json::{Limits, Value, canonical, read};
use onceseal_core::operation::result::{Delivery, Downstream, News, Told, ToolIdentity};
use onceseal_core::operation::{CallIdentity, ModelCode, Revisions, Scope};
use serde_json::Value as Vector;

#[path = "support/vectors.rs"]
mod vectors;

use vectors::{text, vectors};

fn ours(value: &Vector) -> Value {
    read(value.to_string().as_bytes(), &Limits::DATA).expect("a value")
}

fn optional(value: &Vector) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn hash(text: &str) -> Hash {
    Hash::parse(&format!("sha256:{text}")).expect("a digest")
}

fn tool(contract: &Vector) -> ToolIdentity {
    let of = |name| text(contract, name).to_owned();
    ToolIdentity {
        name: of("name"),
        input: of("input_schema_revision"),
        output: of("output_schema_revision"),
        effect: of("effect_revision"),
        handler: of("handler_revision"),
        producer: of("producer_revision"),
        policy: of("policy_revision"),
        source: "refunds".to_owned(),
    }
}

/// A call with all that its answer is told for.
struct Case {
    tenant: String,
    subject: String,
    call: CallIdentity,
    tool: ToolIdentity,
    arguments: Vector,
    request: Hash,
}

impl Case {
    fn new(principal: &Vector, call: &Vector, contract: &Vector) -> Case {
        let tool = tool(contract);
        let (tenant, subject) =
            (text(principal, "tenant_id").to_owned(), text(principal, "subject_id").to_owned());
        let of = |name| text(call, name).to_owned();
        let identity = CallIdentity {
            provider: of("provider"),
            api_family: of("api_family"),
            adapter_revision: of("adapter_revision"),
            response_id: of("response_id"),
            call_id: of("call_id"),
            operation_id: of("operation_id"),
            idempotency_key: optional(&call["idempotency_key"]),
        };
        let scope = Scope { tenant: &tenant, subject: &subject, tool: text(call, "name"), key: "" };
        let revisions = Revisions { input: &tool.input, output: &tool.output, effect: &tool.effect };
        let request = scope.request(&canonical(&ours(&call["arguments"])), revisions);
        Case { call: identity, arguments: call["arguments"].clone(), request, tenant, subject, tool }
    }

    fn told(&self) -> Told<'_> {
        let Case { tenant, subject, call, tool, request, .. } = self;
        Told { tenant, subject, call, tool, request: *request }
    }

    /// Whether data are such as the reference's tool returns for this call.
    fn returns(&self, data: &Value) -> bool {
        let Some(data) = data.as_object() else { return false };
        let text = |name: &str| data.get(name).and_then(Value::as_text).unwrap_or_default();
        let number = text("draft_id").strip_prefix("DRAFT-").unwrap_or_default();
        data.len() == 3
            && !number.is_empty()
            && !number.starts_with('0')
            && number.bytes().all(|b| b.is_ascii_digit())
            && self.arguments["order_ref"] == text("order_ref")
            && self.arguments["reason"] == text("reason")
    }
}

#[test]
fn the_catalogue_of_the_reference() {
    let vectors = vectors();
    let cases = vectors["error_catalog"].as_array().expect("cases");
    for case in cases {
        let code = ModelCode::parse(text(case, "code")).expect("a code");
        assert_eq!(code.category().as_str(), text(case, "category"), "{code}");
        assert_eq!(code.remedy().as_str(), text(case, "recovery"), "{code}");
        assert_eq!(code.is_unknown(), case["outcome"] == "unknown", "{code}");
        assert_eq!(code.is_unknown(), case["status"] == "unknown", "{code}");
        assert_eq!(code.retry_after_ms().map(u64::from), case["retry_after_ms"].as_u64(), "{code}");
    }
    assert_eq!(cases.len(), ModelCode::ALL.len());
    println!("error_catalog: {} passed", cases.len());
}

/// The package of a success, rebuilt from what only it can tell.
fn rebuilt(case: &Case, package: &Vector) -> Value {
    let (model, audit) = (&package["model_result"], &package["protected_audit"]);
    let provenance = &model["provenance"];
    let news = News::Done {
        data: ours(&model["data"]),
        resource_revision: optional(&provenance["resource_revision"]),
        delivery: Delivery::parse(text(&model["execution"], "delivery")).expect("a delivery"),
    };
    let found = &audit["downstream"];
    let downstream = Downstream {
        request_id: optional(&found["request_id"]),
        receipt_id: optional(&found["receipt_id"]),
        status_ref: optional(&found["status_ref"]),
    };
    case.told().package(&news, &downstream, text(provenance, "observed_at"))
}

#[test]
fn the_packages_of_the_reference_byte_for_byte() {
    let vectors = vectors();
    let cases = vectors["success_packages"].as_array().expect("cases");
    for vector in cases {
        let package = &vector["package"];
        let contract = &package["protected_audit"]["tool_contract"];
        let case = Case::new(&vector["principal"], &vector["call"], contract);
        let ours_is = rebuilt(&case, package);
        assert_eq!(canonical(&ours_is), canonical(&ours(package)), "{}", vector["name"]);
        assert_eq!(case.told().problems(&ours_is, |data| case.returns(data)), [""; 0]);
    }
    println!("success_packages: {} passed", cases.len());
}

#[test]
fn the_call_bindings_of_the_reference() {
    let vectors = vectors();
    let cases = vectors["call_binding"].as_array().expect("cases");
    for vector in cases {
        let made: Vector = serde_json::from_str(text(vector, "preimage")).expect("JSON");
        let mut call = made.clone();
        (call["name"], call["arguments"]) = (made["tool_contract"]["name"].clone(), serde_json::json!({}));
        let mut case = Case::new(&made, &call, &made["tool_contract"]);
        case.request = hash(text(&made, "request_sha256"));
        let found = &made["downstream"];
        let downstream = Downstream {
            request_id: optional(&found["request_id"]),
            receipt_id: optional(&found["receipt_id"]),
            status_ref: optional(&found["status_ref"]),
        };
        let binding = case.told().binding(hash(text(&made, "result_sha256")), &downstream);
        assert_eq!(binding, hash(text(vector, "call_binding_sha256")), "{}", vector["name"]);
    }
    println!("call_binding: {} passed", cases.len());
}

/// A package with one place changed.
fn changed(mut package: Vector, change: &Vector) -> Vector {
    for set in change["set"].as_array().expect("changes") {
        let path = set["path"].as_array().expect("a path");
        let mut at = &mut package;
        for step in path {
            at = &mut at[step.as_str().expect("a member")];
        }
        *at = set["value"].clone();
    }
    package
}

/// The package with its digests made to fit what it says.
fn recomputed(case: &Case, mut package: Vector) -> Vector {
    use sha2::{Digest, Sha256};
    let model = ours(&package["model_result"]);
    let result = Hash(Sha256::digest(canonical(&model).as_bytes()).into());
    let found = &package["protected_audit"]["downstream"];
    let downstream = Downstream {
        request_id: optional(&found["request_id"]),
        receipt_id: optional(&found["receipt_id"]),
        status_ref: optional(&found["status_ref"]),
    };
    let hex = |hash: Hash| hash.to_string().trim_start_matches("sha256:").to_owned();
    let binding = &mut package["protected_audit"]["binding"];
    binding["result_sha256"] = hex(result).into();
    binding["call_binding_sha256"] = hex(case.told().binding(result, &downstream)).into();
    package
}

#[test]
fn what_the_validator_of_the_reference_finds() {
    let vectors = vectors();
    let fresh = &vectors["success_packages"][0];
    let contract = &fresh["package"]["protected_audit"]["tool_contract"];
    let own = Case::new(&fresh["principal"], &fresh["call"], contract);
    let error =
        own.told().package(&News::No(ModelCode::NotFound), &Downstream::default(), "2026-07-19T00:00:00Z");
    let error: Vector = serde_json::from_str(&canonical(&error)).expect("JSON");
    let cases = vectors["result_validation"].as_array().expect("cases");
    for vector in cases {
        let name = text(vector, "name");
        let base = if text(vector, "base").starts_with("error") { &error } else { &fresh["package"] };
        let mut package = changed(base.clone(), vector);
        if vector["digests_recomputed_after_change"] == true {
            package = recomputed(&own, package);
        }
        let or = |name: &str, usual: &Vector| match &vector[name] {
            Vector::Null => usual.clone(),
            other => other.clone(),
        };
        let case = Case::new(
            &or("validate_as_principal", &fresh["principal"]),
            &or("validate_as_call", &fresh["call"]),
            &or("validate_with_revision", contract),
        );
        let problems = case.told().problems(&ours(&package), |data| case.returns(data));
        assert_eq!(problems.is_empty(), vector["valid"] == true, "{name}: {problems:?}");
    }
    // How many problems are named is the reference's own: it names a value that
    // is wrong by its kind and again by its digest.
    println!("result_validation: {} passed", cases.len());
}

#[test]
fn what_providers_are_given() {
    let vectors = vectors();
    let fresh = &vectors["success_packages"][0];
    let contract = &fresh["package"]["protected_audit"]["tool_contract"];
    let cases = vectors["provider_adapters"].as_array().expect("cases");
    for vector in cases {
        let case = Case::new(&fresh["principal"], &vector["call"], contract);
        let package = rebuilt(&case, &fresh["package"]);
        let payload = case.told().payload(&package).expect("a payload");
        assert_eq!(canonical(&payload), canonical(&ours(&vector["payload"])), "{}", vector["provider"]);
        let audit = canonical(package.as_object().and_then(|o| o.get("protected_audit")).expect("its audit"));
        assert!(!canonical(&payload).contains("principal_ref") && audit.contains("principal_ref"));
    }
    let mut other = Case::new(&fresh["principal"], &fresh["call"], contract);
    other.call.adapter_revision = "another".to_owned();
    assert!(other.told().payload(&ours(&fresh["package"])).is_none(), "a call under no profile");
    println!("provider_adapters: {} passed", cases.len());
}
