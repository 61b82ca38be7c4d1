# frozen_string_literal: true

# ruby_marks.rb - allocates in methods of many kinds, and tells where
#
# usage: ruby ruby_marks.rb PART COUNT FILE [wait]
#
# Each block is kept, and FILE gets the Ruby frames of each, as caller_locations has them: JSON, a list of
# [frames, blocks, bytes].  The frames are [label, path, line], the outermost first, without those of methods
# of C.  PART is what calls: sample, blocks, exceptions, missing, files, fibers, threads, recursion, deep, or
# all but the last.  With wait it says so, and begins when its standard input has a line.
#
# Start it with RUBY_GC_HEAP_INIT_SLOTS=500000, for many marks more: else a new page of objects may be
# allocated where a mark is.
# No method begins in the line of a call, as methods of C are told by having the place of their caller.

require "json"
require "set"

GC.disable

$kept = []
$told = []
$limit = 0

# The frames of whoever called mark, and mark itself at +line+, the outermost first.  A method of C has the
# place of its caller.
def frames(line)
  found = []
  caller_locations(1).reverse_each do |place|
    found << [place.label, place.path, place.lineno] unless of_c?(place, found.last)
  end
  found.last[2] = line
  found
end

# Is +place+ in a method of C?  +outer+ is the last one in Ruby before it.
def of_c?(place, outer)
  return true unless place.path

  outer && outer[1..] == [place.path, place.lineno] && outer[0] != place.label && !place.label.include?(" in ")
end

# Allocate, and note who called.
def mark
  nr = $kept.size
  return false if nr >= $limit

  size = 600 + nr % 997
  line = __LINE__ + 1
  block = "x" * size
  $kept << block
  $told << [frames(line), size + 1]
  true
end

class Tree
  def initialize(depth)
    @children = []
    2.times do
      @children << Tree.new(depth - 1) if depth.positive?
    end
    mark
  end

  def walk
    @children.each do |child|
      child.walk
    end
    again = lambda do
      mark
    end
    again.call
    self.class.visit(self)
  end

  def self.visit(_tree)
    mark
  end
end

def part_sample
  Tree.new(4).walk
  [3, 1, 2].sort_by do |number|
    mark
    -number
  end
end

def give
  yield 1
  mark
  yield 2
end

def pass(&block)
  give(&block)
end

module Counted
  def self.included(base)
    mark
    base.extend(self)
  end

  def counted
    mark
    yield
  end
end

class Defined
  include Comparable

  attr_reader :number

  def initialize(number)
    @number = number
  end

  define_method(:defined_so) do |depth|
    mark
    defined_so(depth - 1) if depth.positive?
  end

  def <=>(other)
    mark
    number <=> other.number
  end

  def each
    return to_enum(:each) unless block_given?

    mark
    yield number
    mark
  end

  def hash
    mark
    number % 2
  end

  def eql?(other)
    mark
    number == other.number
  end

  def to_s
    mark
    "defined"
  end

  def coerce(other)
    mark
    [other, number]
  end
end

def part_blocks
  pass do |number|
    mark
    [number].map do |inner|
      mark
      inner
    end
  end
  Class.new do
    include Counted
    counted do
      mark
    end
  end
  defined = Defined.new(3)
  defined.defined_so(2)
  [Defined.new(2), Defined.new(1), Defined.new(4)].sort
  Defined.new(1).clamp(Defined.new(2), Defined.new(3))
  Set.new([Defined.new(1), Defined.new(3)])
  text = "so #{defined}"
  text.gsub(/[a-d]/) do
    mark
    "x"
  end
  1 + defined
  method(:part_leaf).to_proc.call
  [1].each(&method(:part_leaf))
  :part_leaf.to_proc.call(self)
  send(:part_leaf, 1)
  public_send(:instance_exec) do
    mark
  end
  hash = Hash.new do |_, _|
    mark
  end
  hash[1]
  catch(:done) do
    mark
    throw :done
  end
  3.then do
    mark
  end
  [1, 2].lazy.map do |i|
    mark
    i
  end.to_a
end

def part_leaf(*)
  mark
end

def fail_at(depth)
  raise ArgumentError, "as planned" if depth.zero?

  fail_at(depth - 1)
rescue TypeError
  nil
ensure
  mark
end

def part_exceptions
  begin
    fail_at(5)
  rescue ArgumentError
    mark
  else
    mark
  ensure
    mark
  end
  tries = 0
  begin
    tries += 1
    mark
    Integer("x")
  rescue ArgumentError => e
    mark
    e.backtrace
    retry if tries < 2
  end
  [1, 2].each do |i|
    next if i == 1

    mark
    break
  end
end

class Missing
  def method_missing(name, *values)
    mark
    values.empty? ? name : super
  end

  def respond_to_missing?(*)
    mark
    true
  end

  def self.const_missing(_name)
    mark
  end

  def self.inherited(base)
    super
    mark
  end
end

def part_missing
  missing = Missing.new
  missing.anything
  missing.respond_to?(:anything)
  Missing.const_get(:Nothing)
  Class.new(Missing)
  begin
    missing.anything(1)
  rescue NoMethodError
    mark
  end
  Missing.class_eval do
    mark
  end
  missing.instance_eval do
    mark
  end
end

def part_files
  eval("mark\n[1].each do\n  mark\nend\n", binding, "given.rb", 7)
  Missing.class_eval("def self.given\n  mark\nend\n", "other.rb", 3)
  Missing.given
  path = "#{$answer}.loaded.rb"
  File.write(path, "mark\n\nclass Loaded\n  mark\n  def go\n    mark\n  end\nend\n")
  load path
  Loaded.new.go
  File.unlink(path)
  binding.eval("mark")
end

def suspend(depth)
  if depth.positive?
    suspend(depth - 1)
  else
    mark
    Fiber.yield
    mark
  end
end

def part_fibers
  fiber = Fiber.new do
    mark
    suspend(3)
    [1, 2].each do |i|
      suspend(i)
    end
  end
  while fiber.alive?
    mark
    fiber.resume
  end
  enumerator = Defined.new(1).each
  enumerator.next
  mark
  begin
    enumerator.next
  rescue StopIteration
    mark
  end
end

def part_threads
  threads = 4.times.map do |i|
    Thread.new do
      mark
      Thread.pass
      Tree.new(2).walk
      sleep 0.001 if i == 1
      recur(5)
    end
  end
  threads.each(&:join)
end

def recur(depth)
  if depth.zero?
    mark
  elsif (depth % 3).positive?
    recur(depth - 1)
  else
    [depth - 1].each do |next_one|
      recur(next_one)
    end
  end
end

def part_recursion
  recur(60)
  (0..30).step(3) do |depth|
    recur(depth)
  end
end

def part_deep
  recur(300)
end

PARTS = %w[sample blocks exceptions missing files fibers threads recursion].freeze

def part_all
  PARTS.each do |part|
    send("part_#{part}")
  end
end

def main
  part = "part_#{ARGV[0]}"
  $limit = ARGV[1].to_i
  $answer = ARGV[2]
  if ARGV[3] == "wait"
    puts "ready"
    $stdout.flush
    $stdin.gets
  end
  # what the first call at a place allocates is not of its block
  limit, $limit = $limit, 1
  mark
  $kept.clear
  $told.clear
  $limit = limit
  send(part) while $kept.size < $limit
  sums = {}
  $told.each do |frames, size|
    sum = (sums[frames] ||= [frames, 0, 0])
    sum[1] += 1
    sum[2] += size
  end
  File.write($answer, JSON.generate(sums.values))
  exit!(0)
end

main
