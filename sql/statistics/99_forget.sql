-- moved_*, fresh_*, calls, shown -> nothing: what a run worked with is not held in memory while pairs are tested
drop table moved_firsts;
drop table moved_steps;
drop table moved_sequences;
drop table fresh_steps;
drop table fresh_sequences;
drop table calls;
drop table shown;
