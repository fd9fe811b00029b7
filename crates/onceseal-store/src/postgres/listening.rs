//! Hearing of commits on a connection of its own, which goes to the server itself:
//! a pooler would not pass on what comes unasked. It is made anew as often as it
//! is lost; meanwhile everybody looks by themselves.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client};

use super::connect::Connector;
use super::dialling::{Dialling, Wire};
use super::statements::listening;

/// Before the next attempt to connect, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Listens from when it is first asked to.
pub(super) struct Listener {
    connector: Connector,
    channel: Channel,
    /// Nothing before it began; gone once it has ended.
    task: Mutex<Option<Option<JoinHandle<()>>>>,
}

/// What is listened for, and whom it is told.
#[derive(Clone)]
struct Channel {
    schema: String,
    tenant: String,
    heard: watch::Sender<u64>,
}

impl Listener {
    pub(super) fn new(connector: Connector, tenant: i32, heard: watch::Sender<u64>) -> Listener {
        let channel = Channel { schema: connector.url.schema.clone(), tenant: tenant.to_string(), heard };
        Listener { connector, channel, task: Mutex::default() }
    }

    /// Begins, if the address says where.
    pub(super) fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none()
            && let Some(dialling) = self.connector.direct()
        {
            *task = Some(Some(self.connector.driver.spawn(listen(dialling, self.channel.clone()))));
        }
    }

    pub(super) fn close(&self) {
        let ended = self.task.lock().unwrap_or_else(PoisonError::into_inner).replace(None);
        if let Some(Some(task)) = ended {
            task.abort();
        }
    }
}

async fn listen(dialling: Dialling, channel: Channel) {
    let mut pause = PAUSES.0;
    loop {
        let did_listen = match dialling.dial().await {
            Ok((client, wire)) => hear(&client, wire, &channel).await,
            Err(_) => false,
        };
        pause = if did_listen { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
        tokio::time::sleep(pause).await;
    }
}

/// Listens until the connection ends; whether it ever did.
async fn hear(client: &Client, mut wire: Wire, channel: &Channel) -> bool {
    let tell = || channel.heard.send_modify(|heard| *heard += 1);
    let sql = listening(&channel.schema);
    let mut asking = pin!(client.batch_execute(&sql));
    let mut listens = false;
    poll_fn(|context| {
        loop {
            if !listens && let Poll::Ready(asked) = asking.as_mut().poll(context) {
                if asked.is_err() {
                    return Poll::Ready(());
                }
                listens = true;
                // What came before it listened was told to others.
                tell();
            }
            match ready!(wire.poll_message(context)) {
                Some(Ok(AsyncMessage::Notification(said)))
                    if said.channel() == channel.schema && said.payload() == channel.tenant =>
                {
                    tell();
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(()),
            }
        }
    })
    .await;
    listens
}
