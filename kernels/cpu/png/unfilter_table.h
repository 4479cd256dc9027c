// The functions of a target, for a file that has copy(), undo_up(), drop_fourth_of_each() and, for each size of pixel,
// undo_sub(), undo_average() and undo_paeth(). Included once by each such file, in its anonymous namespace.
#pragma once

constexpr RowFunctions kFunctions{
    {{copy, copy, copy, copy, copy, copy},
     {undo_sub<1>, undo_sub<2>, undo_sub<3>, undo_sub<4>, undo_sub<6>, undo_sub<8>},
     {undo_up, undo_up, undo_up, undo_up, undo_up, undo_up},
     {undo_average<1>, undo_average<2>, undo_average<3>, undo_average<4>, undo_average<6>, undo_average<8>},
     {undo_paeth<1>, undo_paeth<2>, undo_paeth<3>, undo_paeth<4>, undo_paeth<6>, undo_paeth<8>}},
    drop_fourth_of_each};
