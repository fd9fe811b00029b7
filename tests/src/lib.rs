//! Tests of Onceseal as a whole. What they share stands here.
