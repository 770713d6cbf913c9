// The print order that is being typed: it outlasts a look at other screens.

import { emptyDraft, type Draft } from './printing'

export const draft = $state<Draft>(emptyDraft())
export const clearDraft = (): void => { Object.assign(draft, emptyDraft()) }
