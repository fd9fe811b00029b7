//! A remote that does what tests fear.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onceseal_core::effect::Finding;
use onceseal_core::json::{self, Object, Value};
use tokio::sync::Notify;

use crate::attempt::Call;
use crate::executed::{Executed, Failure};

/// How one call goes.
#[derive(Debug, Clone, Copy)]
enum Course {
    /// It happens, and its answer is lost.
    LoseAnswer,
    /// It never arrives, and nobody is told.
    LoseRequest,
    /// The remote says no.
    Refuse,
    /// It happens, and is never answered.
    Hang,
}

#[derive(Debug, Default)]
struct State {
    hits: u64,
    lags: bool,
    courses: VecDeque<Course>,
    /// What happened, by key.
    effects: BTreeMap<String, Vec<Value>>,
    /// What a query finds.
    visible: BTreeMap<String, Value>,
}

/// A remote in memory, as an executor's other side. It counts what reaches it,
/// performs once per key, and each call goes well unless told otherwise.
///
/// See [`fault`](super) for an example.
#[derive(Debug)]
pub struct Remote {
    keys: bool,
    state: Mutex<State>,
    arrived: Notify,
}

impl Default for Remote {
    fn default() -> Remote {
        Remote::new()
    }
}

impl Remote {
    /// A remote that honours keys: under one key it performs once, and answers
    /// a second call as it did the first.
    #[must_use]
    pub fn new() -> Remote {
        Remote { keys: true, state: Mutex::default(), arrived: Notify::new() }
    }

    /// A remote that ignores keys: whatever reaches it happens.
    #[must_use]
    pub fn without_keys() -> Remote {
        Remote { keys: false, ..Remote::new() }
    }

    /// The next call happens, and its answer is lost on the way.
    pub fn lose_answer(&self) {
        self.state().courses.push_back(Course::LoseAnswer);
    }

    /// The next call is lost on the way there: it does not happen, and its
    /// caller cannot know.
    pub fn lose_request(&self) {
        self.state().courses.push_back(Course::LoseRequest);
    }

    /// The next call is refused for certain: not executed.
    pub fn refuse(&self) {
        self.state().courses.push_back(Course::Refuse);
    }

    /// The next call happens and is never answered.
    pub fn hang(&self) {
        self.state().courses.push_back(Course::Hang);
    }

    /// From here on, what happens cannot be found until it [catches up](Remote::catch_up).
    pub fn lag(&self) {
        self.state().lags = true;
    }

    /// What happened can be found.
    pub fn catch_up(&self) {
        let mut state = self.state();
        state.lags = false;
        let found: Vec<_> = state.effects.iter().map(|(k, all)| (k.clone(), all[0].clone())).collect();
        state.visible.extend(found);
    }

    /// An executor: performs `what` under the call's effect key, or its action
    /// id if it has none, and answers `{"done": what, "number": n}`.
    ///
    /// # Errors
    /// As the call was told to go.
    pub async fn perform(&self, call: Call, what: impl Into<Value>) -> Executed {
        let key = call.effect_key().map_or_else(|| call.action().to_string(), str::to_owned);
        self.perform_key(&key, what).await
    }

    /// The same under this key.
    ///
    /// # Errors
    /// As the call was told to go.
    pub async fn perform_key(&self, key: &str, what: impl Into<Value>) -> Executed {
        let answer = self.answer(key, what.into());
        match answer {
            Some(answer) => answer,
            None => pending().await,
        }
    }

    /// The same for executors that block; a call that hangs is an unknown outcome.
    ///
    /// # Errors
    /// As the call was told to go.
    pub fn perform_blocking(&self, key: &str, what: impl Into<Value>) -> Executed {
        self.answer(key, what.into()).unwrap_or_else(|| Err(Failure::unknown("the remote hangs")))
    }

    /// What became of this key, as a reconciler asks: with the answer it gave.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<(Finding, Option<String>)> {
        let found = self.state().visible.get(key).map(json::canonical);
        let evidence = found.as_ref().map(|_| format!("remote:{key}"));
        Some((found.map_or(Finding::Absent, |answer| Finding::Committed(Some(answer))), evidence))
    }

    /// How many calls reached it.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.state().hits
    }

    /// How often something happened under this key.
    #[must_use]
    pub fn effects(&self, key: &str) -> usize {
        self.state().effects.get(key).map_or(0, Vec::len)
    }

    /// Waits until a call has reached it that nobody has waited for.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: never.
    fn answer(&self, key: &str, what: Value) -> Option<Executed> {
        let mut state = self.state();
        let course = state.courses.pop_front();
        if let Some(Course::LoseRequest) = course {
            return Some(Err(Failure::unknown("the connection was lost")));
        }
        state.hits += 1;
        self.arrived.notify_one();
        if let Some(Course::Refuse) = course {
            return Some(Err(Failure::not_executed("the remote refused")));
        }
        let answer = state.happen(key, what, self.keys);
        match course {
            Some(Course::LoseAnswer) => Some(Err(Failure::unknown("the connection was lost"))),
            Some(Course::Hang) => None,
            _ => Some(Ok(answer)),
        }
    }
}

impl State {
    fn happen(&mut self, key: &str, what: Value, keys: bool) -> Value {
        let number = self.hits;
        let lags = self.lags;
        let happened = self.effects.entry(key.to_owned()).or_default();
        if let (true, Some(first)) = (keys, happened.first()) {
            return first.clone();
        }
        let mut answer = Object::new();
        answer.insert("done", what);
        answer.insert("number", Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
        let answer = Value::Object(answer);
        happened.push(answer.clone());
        if !lags {
            self.visible.insert(key.to_owned(), answer.clone());
        }
        answer
    }
}
