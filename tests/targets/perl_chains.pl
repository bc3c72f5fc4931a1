# Allocates by sysread(), and knows the chain of Perl functions of each call: writes {chain: [calls, bytes]} as JSON to the file
# $ARGV[0], and for a forked child to $ARGV[0].child. A chain is "function:line<function:line...", the innermost first, as
# caller() has it, without blocks of eval; what is outside of subs is {main}, in strings (eval). Bytes are those of the string
# that sysread() makes. If $ARGV[1] is "wait", it begins when a line comes on standard input.
use strict;
use warnings;
use B ();
use Config ();
use List::Util ();

our (%chains, $zero);
our ($line, $child);

BEGIN { open($zero, "<", "/dev/zero") or die }

sub note {
    my ($bytes) = @_;
    my @names = ("obtain:$line");
    for (my $i = 1; my @call = caller($i); $i++) {
        if ($call[3] eq "(eval)" && !defined $call[6]) { # a block
            next;
        }
        my @outer = (undef, undef, undef, undef);
        for (my $k = $i + 1; @outer = caller($k); $k++) {
            last if $outer[3] ne "(eval)" || defined $outer[6];
        }
        my $name = @outer ? $outer[3] : "{main}";
        $name = $outer[7] ? "{main}" : "(eval)" if $name eq "(eval)";
        $name =~ s/^main:://;
        push @names, "$name:$call[2]";
    }
    my $chain = join("<", @names);
    $chains{$chain}[0] += 1;
    $chains{$chain}[1] += $bytes;
}

sub obtain {
    my ($size) = @_;
    my $text;
    sysread($zero, $text, $size); BEGIN { $line = __LINE__ }
    note(B::svref_2object(\$text)->LEN);
    undef $text;
    return $size;
}

BEGIN { obtain(1400) }
use constant SIZE => obtain(1401);

sub recurse {
    my ($depth, $size) = @_;
    return obtain($size) if $depth == 0;
    return recurse($depth - 1, $size);
}

package Shop;
use overload '""' => sub { main::obtain(1530); "shop" }, '+' => \&add, '<=>' => sub { main::obtain(1531); 0 };
our $AUTOLOAD;

sub new {
    my ($class, $n) = @_;
    main::obtain(1500 + $_) for 1 .. $n;
    return bless {n => $n}, $class;
}

sub add { main::obtain(1532); return $_[0] }

sub price {
    my ($self) = @_;
    main::obtain(1520);
    return map { main::obtain(1521) } 1, 2;
}

sub AUTOLOAD {
    return main::obtain(1533) if $AUTOLOAD ne "Shop::jump";
    @_ = (2, 1534);
    goto &main::recurse;
}

sub DESTROY { main::obtain(1535) }

package Tied;
sub TIESCALAR { main::obtain(1540); bless [] }
sub FETCH { main::obtain(1541); 7 }
sub STORE { main::obtain(1542) }

package main;

sub by_size { obtain(1550); $a <=> $b }

sub handled {
    local $SIG{__WARN__} = sub { obtain(1560) };
    warn "x";
    local $SIG{__DIE__} = sub { obtain(1561) };
    eval { obtain(1562); die "y" };
    obtain(1563) if $@;
    local $SIG{USR1} = sub { recurse(1, 1564) };
    kill USR1 => $$;
    obtain(1565);
}

sub throws {
    my ($depth) = @_;
    if ($depth == 0) { obtain(1300); die "end\n" }
    eval { throws($depth - 1); 1 } or do { obtain(1301); die $@ };
}

sub counter {
    my ($n) = @_;
    return sub { obtain(1600 + $n); return $n++ };
}

sub blocks {
    for my $i (1 .. 3) {
        if ($i == 1) {
            obtain(1310);
            recurse($i, 1311);
        } elsif ($i == 2) {
            recurse($i, 1312);
            if ($i) {
                obtain(1313);
            }
        } else {
            obtain(1314);
        }
        unless ($i == 2) {
            obtain(1315) while $i++ < 3;
        }
    }
    while (1) {
        recurse(0, 1316);
        last;
    }
}

sub callbacks {
    my $shop = Shop->new(2);
    $shop->price;
    my $text = "$shop";
    my $sum = $shop + 1;
    $shop->missing;
    $shop->jump;
    my @list = sort { obtain(1551); eval { obtain(1552); recurse(1, 1553) }; $a <=> $b } 3, 1, 2;
    @list = sort by_size 3, 1, 2;
    my @shops = sort { $a <=> $b } Shop->new(0), Shop->new(0);
    List::Util::first(sub { obtain(1554); 0 }, 1, 2);
    List::Util::reduce(sub { obtain(1555); $a + $b }, 1, 2, 3);
    my @found = grep { obtain(1556) } 1, 2;
    tie my $tied, "Tied";
    $tied = $tied + 1;
    untie $tied;
    (my $s = "abc") =~ s/[ac]/obtain(1557); "x"/ge;
    "abc" =~ /b(?{ obtain(1558) })c(?{ recurse(2, 1559) })/;
    my $pattern = qr/b(?{ obtain(1574) })/;
    "abc" =~ /$pattern(?{ my @list = sort { obtain(1575); 0 } 1, 2 })c/;
    eval "\n\nobtain(1570); recurse(1, 1571);";
    eval { eval { eval "sub { obtain(1572) }->(); die" ; die } ; obtain(1573) };
    my @counters = map { counter($_) } 1 .. 3;
    $_->() for @counters, @counters;
    handled();
    blocks();
    eval { throws(3) };
    {
        no strict "refs";
        no warnings;
        *{"main::made"} = sub { obtain(1580) };
        made();
        *made = sub { recurse(0, 1581) };
        made();
    }
    my $packed = do { local $_ = 3; recurse($_, 1582) };
}

sub short_lived {
    for my $i (1 .. 40) {
        my $f = eval(("\n" x ($i % 7)) . "sub {\n obtain(1700 + \$_[0]);\n}");
        $f->($i % 3);
    }
}

sub files {
    my $name = "$ARGV[0].$$.pl";
    open(my $file, ">", $name) or die;
    print $file "package Loaded;\nBEGIN { main::obtain(1800) }\nsub f { main::recurse(1, 1801) }\nmain::obtain(1802);\nf();\n1;\n";
    close $file;
    require "./$name";
    Loaded::f();
    {
        no warnings;
        do "./$name";
    }
    my @sorted = sort { do "./$name"; 0 } 1, 2;
    unlink $name;
}

sub work {
    my ($seed) = @_;
    srand($seed);
    for (1 .. 200) {
        my $way = int(rand(6));
        if ($way == 0) { recurse(int(rand(40)), 1900) }
        elsif ($way == 1) { obtain(1901) }
        elsif ($way == 2) { my @x = sort { recurse(int(rand(3)), 1902); 0 } 1 .. 3 }
        elsif ($way == 3) {
            Shop->new(1)->price;
            obtain(1904);
        }
        elsif ($way == 4) { counter($_)->() for 1 .. 3 }
        else { eval { throws(2) }; obtain(1903) }
    }
}

sub write_chains {
    my ($name) = @_;
    my %written = %chains;
    open(my $out, ">", $name) or die;
    print $out "{", join(",", map { "\"$_\": [$written{$_}[0], $written{$_}[1]]" } sort keys %written), "}";
    close $out;
}

sub other_thread {
    my ($size) = @_;
    for my $i (1 .. 5) {
        recurse($i, $size);
        my @list = sort { obtain($size + 1); $a <=> $b } 2, 1;
        eval { throws(1) };
    }
    return %chains;
}

if (($ARGV[1] // "") eq "wait") {
    $| = 1;
    print "ready\n";
    my $line = <STDIN>;
    %chains = (); # what was allocated before an attach is not in its recording
}
callbacks();
if ($child // 1) {
    recurse(2, 1920);
    short_lived();
}
files();
recurse(900, 1950);
work(9);
if ($Config::Config{useithreads}) {
    require threads;
    my %before = %chains;
    my @threads = map { threads->create({context => "list"}, \&other_thread, 2000 + 10 * $_) } 1 .. 3;
    for my $thread (@threads) {
        my %theirs = $thread->join;
        for my $chain (keys %theirs) {
            for my $i (0, 1) {
                $chains{$chain}[$i] += $theirs{$chain}[$i] - ($before{$chain} ? $before{$chain}[$i] : 0);
            }
        }
    }
}
$child = fork;
if (!$child) {
    %chains = (); # a recording of a forked child has what it allocates itself
    recurse(3, 1960);
    callbacks();
    work(11);
    write_chains("$ARGV[0].child");
    kill KILL => $$;
}
waitpid($child, 0);
END {
    if ($child) {
        recurse(1, 1970);
        write_chains($ARGV[0]);
    }
}
