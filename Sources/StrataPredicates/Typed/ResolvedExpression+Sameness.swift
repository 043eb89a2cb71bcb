extension ResolvedExpression {
    /// Whether two expressions have the same form, and so the same value for every object.
    ///
    /// Each was resolved separately, against one schema.
    package func isSame(as other: ResolvedExpression) -> Bool {
        switch (self, other) {
        case (.constant(let left, let leftType), .constant(let right, let rightType)):
            return leftType == rightType && left == right
        case (.object(let left), .object(let right)): return left.isSame(as: right)
        case (.attribute(let left, let name), .attribute(let right, let otherName)):
            return name == otherName && left.isSame(as: right)
        case (.function(let left, let operands, _), .function(let right, let others, _)):
            return left == right && same(operands, others) { $0.isSame(as: $1) }
        case (.aggregate(let left), .aggregate(let right)):
            return left.function == right.function && left.collection.isSame(as: right.collection)
                && same(left.element, right.element) { $0.isSame(as: $1) }
        case (
            .conditional(let test, let first, let second), .conditional(let otherTest, let otherFirst, let otherSecond)
        ):
            return test.isSame(as: otherTest) && first.isSame(as: otherFirst) && second.isSame(as: otherSecond)
        case (.rowAggregate(let left, let operand), .rowAggregate(let right, let other)):
            return left == right && operand.isSame(as: other)
        default: return false
        }
    }
}

extension ResolvedCondition {
    fileprivate func isSame(as other: ResolvedCondition) -> Bool {
        switch (self, other) {
        case (.constant(let left), .constant(let right)): return left == right
        case (.and(let operands), .and(let others)), (.or(let operands), .or(let others)):
            return same(operands, others) { $0.isSame(as: $1) }
        case (.not(let operand), .not(let other)): return operand.isSame(as: other)
        case (.isNull(let operand), .isNull(let other)): return operand.isSame(as: other)
        case (.comparison(let left), .comparison(let right)):
            return left.operator == right.operator && left.folding == right.folding
                && left.left.isSame(as: right.left) && left.right.isSame(as: right.right)
        case (.between(let left, let lower, let upper, let folding), .between(let right, let low, let high, let other)):
            return folding == other && left.isSame(as: right) && lower.isSame(as: low) && upper.isSame(as: high)
        case (.member(let operand, let set), .member(let other, let otherSet)):
            return operand.isSame(as: other) && set.folding == otherSet.folding && set.members == otherSet.members
                && set.containsNull == otherSet.containsNull
        case (.string(let left), .string(let right)):
            return left.test == right.test && left.folding == right.folding && left.text.isSame(as: right.text)
                && left.pattern.isSame(as: right.pattern)
        case (.exists(let left, let test), .exists(let right, let other)):
            return left.isSame(as: right) && test.isSame(as: other)
        default: return false
        }
    }
}

extension ResolvedPath {
    fileprivate func isSame(as other: ResolvedPath) -> Bool {
        variable == other.variable
            && same(steps, other.steps) { $0.slot == $1.slot && $0.destination === $1.destination }
    }
}

extension ResolvedCollection {
    fileprivate func isSame(as other: ResolvedCollection) -> Bool {
        variable == other.variable && relationship.slot == other.relationship.slot && owner.isSame(as: other.owner)
            && same(filter, other.filter) { $0.isSame(as: $1) }
    }
}

private func same<Part>(_ left: [Part], _ right: [Part], by test: (Part, Part) -> Bool) -> Bool {
    left.count == right.count && zip(left, right).allSatisfy(test)
}

private func same<Part>(_ left: Part?, _ right: Part?, by test: (Part, Part) -> Bool) -> Bool {
    switch (left, right) {
    case (nil, nil): true
    case (let left?, let right?): test(left, right)
    default: false
    }
}
