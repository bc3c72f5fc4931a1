# Allocates by malloc, and knows the chain of Ruby functions of each call: writes {chain: [calls, bytes]} as JSON to the
# file ARGV[0], and for a forked child to ARGV[0] + ".child". A chain is "function:line<function:line...", the innermost
# first; functions in C have the line of their caller. If ARGV[1] is "wait", it begins when a line comes on standard input.
require "fiddle"
require "json"

GC.disable # which allocates
CHAINS = {}
LOCK = Thread::Mutex.new
DIRECTORY = File.dirname(__FILE__)

def note(size)
  names = caller_locations(1).map { |l| "#{l.label}:#{l.lineno}" }
  LOCK.synchronize do
    entry = CHAINS[names.join("<")] ||= [0, 0]
    entry[0] += 1
    entry[1] += size
  end
  size
end

def obtain(size)
  note(size); Fiddle.malloc(size)
end

def recurse(depth, size)
  return obtain(size) if depth == 0
  recurse(depth - 1, size)
end

module Priced
  def price
    obtain(520)
    [1].each { |i| obtain(521) }
  end
end

class Shop
  include Priced
  include Comparable

  def initialize(n)
    @goods = (1..n).map { |i| obtain(500 + i) }
  end

  def self.open
    new(3).tap { |shop| obtain(510) }
  end

  def <=>(other)
    obtain(530)
    0
  end

  def to_s
    obtain(531)
    "shop"
  end

  def each
    obtain(532)
    yield 1
    yield 2
  ensure
    obtain(533)
  end

  def method_missing(name, *rest)
    name == :missing ? obtain(534) : super
  end

  def respond_to_missing?(name, all = false)
    name == :missing
  end

  define_method(:defined) { |n| obtain(540 + n) }
  class << self
    def own
      [2, 1].sort_by { |i| obtain(550) }
    end
  end
end

def throws(depth)
  if depth == 0
    obtain(300)
    raise ArgumentError
  end
  begin
    throws(depth - 1)
  rescue ArgumentError
    obtain(301)
    raise
  ensure
    obtain(302)
  end
end

def callbacks
  shop = Shop.open
  shop.price
  shop < Shop.new(1)
  "#{shop}"
  shop.each { |i| obtain(560 + i) }
  shop.missing
  shop.defined(1)
  shop.send(:defined, 2)
  shop.method(:price).call
  Shop.own
  Shop.instance_method(:price).bind(shop).call
  [3, 1, 2].sort { |a, b| obtain(570); a <=> b }
  [1, 2].each_with_index.map { |v, i| obtain(571) }
  [1].inject(0) { |a, b| obtain(572); a }
  { a: 1 }.each_pair { |k, v| obtain(573) }
  "aXb".gsub(/X/) { obtain(574); "Y" }
  %w[a b].map(&:to_sym).each(&->(s) { obtain(575) })
  proc { |n| obtain(n) }.call(576)
  shop.instance_eval { obtain(577) }
  catch(:done) { [1, 2].each { |i| obtain(578); throw :done if i == 1 } }
  eval "obtain(579)\n", binding, "evaluated", 7
  Class.new { def x(o); o.send(:obtain, 580); end }.new.x(self)
  3.times { |i| next if i == 0; obtain(581); break if i == 1 }
  begin
    throws(3)
  rescue ArgumentError
    obtain(303)
  end
end

# Functions whose objects have the same addresses, one after the other.
def short_lived
  40.times do |i|
    eval "\n" * (i % 7) + "def f#{i}(n)\n  obtain(700 + n)\nend\nf#{i}(#{i % 3})\n", binding, "file#{i}"
    GC.enable
    GC.start if i % 8 == 0
    GC.disable
  end
end

def fibers
  numbers = Fiber.new do
    3.times do |i|
      recurse(i, 800 + i)
      Fiber.yield i
    end
    obtain(810)
  end
  4.times { numbers.resume; obtain(811) }
  letters = Enumerator.new { |y| obtain(820); y << 1; obtain(821); y << 2 }
  letters.next
  obtain(822)
  letters.next
  letters.each { |l| obtain(823) }
  (1..Float::INFINITY).lazy.map { |i| obtain(824) }.first(2)
end

def work(seed)
  state = Random.new(seed)
  100.times do
    case state.rand(5)
    when 0 then recurse(state.rand(40), 1000)
    when 1 then obtain(1001)
    when 2 then state.rand(4).times { |i| recurse(state.rand(5), 1002) }
    when 3 then Thread.pass; Shop.new(2).price
    else throws(2) rescue obtain(1003)
    end
  end
end

def main
  [3].each { |i| callbacks }
  short_lived
  fibers
  recurse(900, 901)
  threads = (1..4).map { |i| Thread.new { work(i) } }
  threads.each(&:join)
  work(9)
end

def write(path)
  File.write(path, JSON.generate(CHAINS))
end

if ARGV[1] == "wait"
  puts "ready"
  $stdout.flush
  $stdin.gets
end
main
child = fork do
  CHAINS.clear # a recording of a forked child has what it allocates itself
  recurse(3, 950)
  callbacks
  write(ARGV[0] + ".child")
  exit!(0)
end
Process.wait(child)
write(ARGV[0])
