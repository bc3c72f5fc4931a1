# Orders of a shop: the text of each, and the late ones.
use strict;

sub make_order {
    my ($number) = @_;
    return "order " . $number . ": " . "x" x 80;
}

package Shop;

sub open {
    my ($class, $count) = @_;
    my @orders = map { main::make_order($_) } 1 .. $count;
    my @late = map { {number => $_, text => $orders[$_ - 1]} } grep { $_ % 3 == 0 } 1 .. $count;
    return bless {orders => \@orders, late => \@late}, $class;
}

package main;

my $shop = Shop->open(20_000);
print scalar(@{$shop->{orders}}), " orders, ", scalar(@{$shop->{late}}), " of them late\n";
