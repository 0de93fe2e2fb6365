-- journal position -> drained: how far this store holds everything; in the same transaction as the rows
update drained
set segment = $segment, position = $offset;
