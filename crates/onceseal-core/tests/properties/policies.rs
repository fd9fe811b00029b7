//! Four policies: the second changes who is a boss and no rule, the third
//! allows what the first asks about, the fourth asks about the same by another
//! rule, and denies what the first allows.

macro_rules! policy {
    ($bosses:literal, $rule:literal) => {
        concat!(
            "schema: onceseal.policy/v1\n",
            "groups: { bosses: [",
            $bosses,
            "], ops: [\"host:opal\"] }\n",
            "operators: [ops]\n",
            "actions:\n",
            "  pay:\n",
            "    effect: \"pay:{id}\"\n",
            "    incidental: [note]\n",
            "    lease: 60s\n",
            "    deadline: 180s\n",
            "    max_attempts: 3\n",
            "    approval: { ttl: 120s, approvers: [bosses], quorum: 2 }\n",
            "    ",
            $rule,
            "\n",
            "  send: { effect: \"pay:{id}\", incidental: [note], lease: 60s, decision: allow }\n",
            "  read: { incidental: [note], approval: { ttl: 120s }, decision: approve }\n",
        )
    };
}

const BY_AMOUNT: &str = policy!(
    r#""host:ada", "host:bob", cy, "os:owner""#,
    "rules: [{ when: { amount_lte: 10 }, decision: allow }, { when: { amount_lte: 100 }, decision: approve }, { decision: deny }]"
);
const OTHER_BOSSES: &str = policy!(
    r#""host:bob", cy, "host:dan""#,
    "rules: [{ when: { amount_lte: 10 }, decision: allow }, { when: { amount_lte: 100 }, decision: approve }, { decision: deny }]"
);
const ALLOWED: &str = policy!(r#""host:bob""#, "decision: allow");
const TURNED: &str = policy!(
    r#""host:ada", "host:bob", cy, "os:owner""#,
    "rules: [{ when: { amount_lte: 10 }, decision: deny }, { decision: approve }]"
);

pub(crate) const POLICIES: [&str; 4] = [BY_AMOUNT, OTHER_BOSSES, ALLOWED, TURNED];
