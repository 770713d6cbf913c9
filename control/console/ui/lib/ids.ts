// Ids of products and items.

const ID = /^[abcdefghkmnpqrstwxyABCDEFGHKMNPQRSTUVWXY0-9]{24}$/

export const isId = (text: string): boolean => ID.test(text)

/** What is asked about a thing whose id is not known yet, or by who may not. */
export const pending = new Promise<never>(() => {})
