//! What a store on PostgreSQL promises where servers, sessions and other
//! processes do their worst: each test fails where the protocol is simpler.

#[path = "postgres/base.rs"]
mod base;
#[path = "postgres/breaking.rs"]
mod breaking;
#[path = "postgres/crowds.rs"]
mod crowds;
#[path = "postgres/cutting.rs"]
mod cutting;
#[path = "postgres/fencing.rs"]
mod fencing;
#[path = "postgres/hints.rs"]
mod hints;
#[path = "postgres/losing.rs"]
mod losing;
#[path = "postgres/numbering.rs"]
mod numbering;
#[path = "postgres/opening.rs"]
mod opening;
#[path = "postgres/order.rs"]
mod order;
#[path = "postgres/outages.rs"]
mod outages;
#[path = "postgres/room.rs"]
mod room;
#[path = "postgres/standbys.rs"]
mod standbys;
#[path = "postgres/sweeping.rs"]
mod sweeping;
#[path = "postgres/texts.rs"]
mod texts;
#[path = "postgres/waiting.rs"]
mod waiting;
