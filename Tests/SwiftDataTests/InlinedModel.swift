// swift-format-ignore-file
import Foundation
import SwiftData

/// A class with what Apple's `@Model` writes, as Xcode shows and inlines it, in place of the macro.
///
/// Programs that were generated, or that need an accessor of their own, have such classes.
final class Inlined {
    @Transient
    private var _$backingData: any SwiftData.BackingData<Inlined> = Inlined.createBackingData()

    public var persistentBackingData: any SwiftData.BackingData<Inlined> {
        get { _$backingData }
        set { _$backingData = newValue }
    }

    static var schemaMetadata: [SwiftData.Schema.PropertyMetadata] {
        return [
            SwiftData.Schema.PropertyMetadata(name: "name", keypath: \Inlined.name, defaultValue: nil, metadata: SwiftData.Schema.Attribute(.unique)),
            SwiftData.Schema.PropertyMetadata(name: "count", keypath: \Inlined.count, defaultValue: 3, metadata: nil),
            SwiftData.Schema.PropertyMetadata(name: "mood", keypath: \Inlined.mood, defaultValue: Mood.calm, metadata: nil),
            SwiftData.Schema.PropertyMetadata(name: "knots", keypath: \Inlined.knots, defaultValue: nil, metadata: SwiftData.Schema.Relationship(deleteRule: .cascade)),
        ]
    }

    required init(backingData: any SwiftData.BackingData<Inlined>) {
        _name = _SwiftDataNoType()
        _count = _SwiftDataNoType()
        _mood = _SwiftDataNoType()
        _knots = _SwiftDataNoType()
        self.persistentBackingData = backingData
    }

    @Transient
    private let _$observationRegistrar = Observation.ObservationRegistrar()

    struct _SwiftDataNoType {}

    var name: String {
        @storageRestrictions(accesses: _$backingData, initializes: _name)
        init(initialValue) {
            _$backingData.setValue(forKey: \.name, to: initialValue)
            _name = _SwiftDataNoType()
        }
        get {
            _$observationRegistrar.access(self, keyPath: \.name)
            return self.getValue(forKey: \.name)
        }
        set {
            _$observationRegistrar.withMutation(of: self, keyPath: \.name) {
                self.setValue(forKey: \.name, to: newValue)
            }
        }
    }
    @Transient private var _name: _SwiftDataNoType = _SwiftDataNoType()

    var count: Int = 3 {
        @storageRestrictions(accesses: _$backingData, initializes: _count)
        init(initialValue) {
            _$backingData.setValue(forKey: \.count, to: initialValue)
            _count = _SwiftDataNoType()
        }
        get {
            _$observationRegistrar.access(self, keyPath: \.count)
            return self.getValue(forKey: \.count)
        }
        set {
            _$observationRegistrar.withMutation(of: self, keyPath: \.count) {
                self.setValue(forKey: \.count, to: newValue)
            }
        }
    }
    @Transient private var _count: _SwiftDataNoType = _SwiftDataNoType()

    var mood: Mood = Mood.calm {
        @storageRestrictions(accesses: _$backingData, initializes: _mood)
        init(initialValue) {
            _$backingData.setValue(forKey: \.mood, to: initialValue)
            _mood = _SwiftDataNoType()
        }
        get {
            _$observationRegistrar.access(self, keyPath: \.mood)
            return self.getValue(forKey: \.mood)
        }
        set {
            _$observationRegistrar.withMutation(of: self, keyPath: \.mood) {
                self.setValue(forKey: \.mood, to: newValue)
            }
        }
    }
    @Transient private var _mood: _SwiftDataNoType = _SwiftDataNoType()

    var knots: [Knot] = [] {
        @storageRestrictions(accesses: _$backingData, initializes: _knots)
        init(initialValue) {
            _$backingData.setValue(forKey: \.knots, to: initialValue)
            _knots = _SwiftDataNoType()
        }
        get {
            _$observationRegistrar.access(self, keyPath: \.knots)
            return self.getValue(forKey: \.knots)
        }
        set {
            _$observationRegistrar.withMutation(of: self, keyPath: \.knots) {
                self.setValue(forKey: \.knots, to: newValue)
            }
        }
    }
    @Transient private var _knots: _SwiftDataNoType = _SwiftDataNoType()

    init(name: String) { self.name = name }
}

extension Inlined: SwiftData.PersistentModel {}
extension Inlined: Observation.Observable {}
