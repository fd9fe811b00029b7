//! What a store on PostgreSQL promises where servers, sessions and other
//! processes do their worst: each test fails where the protocol is simpler.

#[path = "postgres/base.rs"]
mod base;
#[path = "postgres/waiting.rs"]
mod waiting;
#[path = "postgres/fencing.rs"]
mod fencing;
#[path = "postgres/losing.rs"]
mod losing;
#[path = "postgres/cutting.rs"]
mod cutting;
#[path = "postgres/room.rs"]
mod room;
#[path = "postgres/order.rs"]
mod order;
#[path = "postgres/texts.rs"]
mod texts;
